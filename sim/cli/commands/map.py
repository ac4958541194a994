"""``tilewright map``: units and streams of a compiled kernel as text, and as an SVG picture."""

from __future__ import annotations

import argparse
from typing import Any

from sim.cli.kernel_lookup import file_of
from sim.cli.kernel_options import add_problem, read_problem
from sim.cli.options import Subparsers, add_json
from sim.files import require_suffix, require_writable, write_output
from sim.user_files import running_file

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``map``."""
    parser = subparsers.add_parser(
        "map",
        help="show what each unit does for a kernel, and where its streams run",
        description="Compile a kernel for a chip. Print what each unit does, where each stream "
        "runs and how fast, and what bounds the speed; draw it as SVG if asked.",
    )
    add_problem(parser)
    parser.add_argument(
        "-o",
        "--svg",
        metavar="FILE.svg",
        help="file for the picture; - for standard output, without the text",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Compile the kernel, print its map and write its picture."""
    if args.svg and args.svg != "-":
        require_suffix(args.svg, (".svg",), where="--svg")
        require_writable(args.svg, where="--svg")
    problem, _ = read_problem(args)

    from sim.run.api import KernelProgram

    with running_file(file_of(args.kernel)):
        program = KernelProgram(problem, args.config)
    text, written = program.map_text(), None
    if args.svg == "-":
        print(program.map())
    else:
        # Before the text: a reader that takes its first lines alone ends the command.
        if args.svg:
            written = args.svg
            write_output(written, program.map(), where="--svg")
        print(text)
        if written:
            print(f"\npicture: {written}")
    return {
        "kernel": problem.kernel.name,
        "config": args.config,
        "params": problem.params,
        "svg": written,
        "map": text.splitlines(),
        "predicted_cycles": program.predicted_cycles,
    }
