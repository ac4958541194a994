"""``tilewright verilog``: Verilog of a chip or of one component."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import Any

from hw.arch.errors import BadInputError
from sim.cli.options import Subparsers, add_config, add_json
from sim.cli.own_files import STANDARD_OUTPUT, require_apart
from sim.cli.requested_component import requested_component
from sim.cli.stand_alone import add_settings
from sim.cli.unit_options import add_systolic, component_name
from sim.components import ARRAYS, COMPONENTS
from sim.files import require_writable, write_output
from sim.progress import shown_progress

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``verilog``."""
    parser = subparsers.add_parser(
        "verilog",
        help="emit the Verilog of a chip or of one component",
        description="Emit the Verilog of a chip or of one component.",
    )
    add_config(parser, default=None)
    parser.add_argument(
        "--component",
        type=component_name,
        choices=(*COMPONENTS, *ARRAYS),
        metavar="NAME",
        help="emit only this component of `tilewright list`",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.v",
        help="output file, overwritten, with missing folders created; - for standard output "
        "(default build/NAME.v, NAME of configuration, preset or module)",
    )
    parser.add_argument(
        "--source",
        action="store_true",
        help="annotate wires and cells with file and line of the Amaranth source",
    )
    parser.add_argument(
        "--waivers",
        metavar="FILE.vlt",
        help="also write the waivers for `verilator --lint-only -Wall FILE.vlt FILE.v`",
    )
    add_settings(parser)
    add_systolic(parser)
    add_json(parser)


def _require_output(output: str, args: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, before any work."""
    if output not in STANDARD_OUTPUT:
        require_writable(output, where="--output")
        if args.json:
            require_apart([("--output", output), ("--json", args.json)], [])
    elif args.json == "-":
        raise BadInputError(
            f"--output must be a file beside --json -, not {output!r}: both are standard output",
            where="--output",
            value=output,
            rule="a file",
        )


def _require_waivers(file: str, output: str) -> None:
    """Refuse waivers that cannot be written, or that belong to no file."""
    require_writable(file, where="--waivers")
    if output in STANDARD_OUTPUT or Path(file).resolve() == Path(output).resolve():
        raise BadInputError(
            f"--waivers must be another file than that of --output, not {file!r} beside {output!r}",
            where="--waivers",
            value=file,
            rule="another file than that of --output",
        )


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Emit the chip of ``--config``, or a component, to ``--output``."""
    if args.output is not None:
        _require_output(args.output, args)
    asked = requested_component(args)
    output = args.output or f"build/{asked.name}.v"
    if args.output is None:
        _require_output(output, args)
    to_file = output not in STANDARD_OUTPUT
    if args.waivers is not None:
        _require_waivers(args.waivers, output)

    from gen.header import About
    from gen.lint import waivers
    from gen.release import text_note
    from gen.verilog import emit

    command = f"tilewright verilog {asked.command}{' --source' * args.source}"
    about = About(asked.summary, command, asked.parameters, asked.notes)
    started = time.monotonic()
    with shown_progress() as progress, progress.step("emitting Verilog"):
        design = emit(asked.component, source=args.source, about=about)
    seconds = time.monotonic() - started
    if note := text_note():
        print(f"tilewright verilog: note: {note}", file=sys.stderr)
    text = design.file
    if args.waivers is not None:
        write_output(args.waivers, waivers(f"*{Path(output).name}"), where="--waivers")
    if to_file:
        write_output(output, text, where="--output")
    else:
        sys.stdout.write(text)
    content = text.encode()
    report = {
        "file": output if to_file else "-",
        "sha256": hashlib.sha256(content).hexdigest(),
        "top": design.top,
        "bytes": len(content),
        "lines": text.count("\n"),
        "modules": len(design.instances),
        "units": design.instances,
        "seconds": seconds,
    }
    place = output if to_file else "standard output"
    print(
        f"{place}: module {design.top}, {len(content):,} bytes, "
        f"{report['modules']} module definitions, {seconds:.1f} s",
        file=sys.stdout if to_file else sys.stderr,
    )
    return report
