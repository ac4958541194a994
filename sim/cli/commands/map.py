"""``tilewright map``: SVG picture of the units and routes that a compiled kernel uses."""

from __future__ import annotations

import argparse
from typing import Any

from sim.cli.kernel_lookup import file_of, running_file
from sim.cli.kernel_options import add_problem, read_problem
from sim.cli.options import Subparsers, add_json
from sim.files import require_writable, write_output

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``map``."""
    parser = subparsers.add_parser(
        "map",
        help="draw the placement and routes of a compiled kernel",
        description="Compile a kernel for a chip, and draw its units and routes as SVG.",
    )
    add_problem(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.svg",
        help="output file; - for standard output (default build/KERNEL.svg)",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Compile the kernel and write its picture."""
    if args.output and args.output != "-":
        require_writable(args.output, where="--output")
    problem, _ = read_problem(args)

    from sim.run.api import KernelProgram

    with running_file(file_of(args.kernel)):
        program = KernelProgram(problem, args.config)
    picture = program.map()
    output = args.output or f"build/{problem.kernel.name}.svg"
    if output == "-":
        print(picture)
    else:
        write_output(output, picture, where="--output")
        sizes = ", ".join(f"{name} = {value}" for name, value in problem.params.items())
        print(
            f"{output}: {problem.kernel.name} of {sizes} on {args.config}, "
            f"{program.predicted_cycles:,} cycles predicted"
        )
    return {
        "kernel": problem.kernel.name,
        "config": args.config,
        "params": problem.params,
        "output": None if output == "-" else output,
        "bytes": len(picture.encode()),
        "predicted_cycles": program.predicted_cycles,
    }
