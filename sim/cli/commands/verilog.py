"""``tilewright verilog``: Verilog of a chip or of one component."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hw.arch.errors import BadInputError
from sim.cli.options import DEFAULT_CONFIG, Subparsers, add_config, add_json
from sim.cli.own_files import STANDARD_OUTPUT, require_apart
from sim.cli.stand_alone import add_settings, require_no_settings, stand_alone
from sim.cli.unit_options import (
    add_systolic,
    asks_for_systolic,
    component_name,
    systolic_command,
    systolic_component,
    systolic_config,
    tensor_config,
)
from sim.components import ARRAYS, COMPONENTS
from sim.files import require_writable, write_output
from sim.progress import shown_progress
from sim.rules import load_config, validating

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hw.arch.config import ChipConfig
    from hw.emit.shared import Shareable

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


class _Asked(NamedTuple):
    """The requested component, and the contents of its file header.

    Members
    -------
    component : Shareable
    name : str
        Default name of the file.
    summary, command : str
    parameters, notes : dict
        As :class:`gen.header.About` takes them.
    """

    component: Shareable
    name: str
    summary: str
    command: str
    parameters: dict[str, object]
    notes: dict[str, str] | None


def _asked(args: argparse.Namespace) -> _Asked:
    if not asks_for_systolic(args):
        return _of_chip(args)
    require_no_settings(args)
    return _of_unit(args)


def _of_unit(args: argparse.Namespace) -> _Asked:
    """Request of a stand-alone matrix unit, an array or a tensor unit."""
    from sim.cli.port_notes import array_notes, tensor_notes, unit_notes

    config, count = systolic_config(args)
    component = systolic_component(args, config)
    array = config.array
    parameters: dict[str, object] = vars(array) | {
        "dataflow": array.dataflow.value,
        "formats": ", ".join(fmt.name for fmt in array.formats),
    }
    size = f"{array.rows} x {array.columns} cells"
    if args.component == "array":
        kind, notes = "systolic array", array_notes(array, skewed=not args.raw_edges)
        parameters["skewed"] = not args.raw_edges
    else:
        kind, notes = "systolic matrix unit", unit_notes(config)
        tensor = tensor_config(args, config)
        if tensor is not None:
            config = tensor.unit
            kind, notes = "tensor unit", tensor_notes(config)
            parameters["buffer_rows"] = tensor.buffer_rows
        sums = dict.fromkeys(fmt.accumulator.name for fmt in array.formats)
        parameters |= vars(config) | {
            "result_rows": config.queue_rows,
            "out": " or ".join(sums) if config.out is None else config.out.name,
        }
        del parameters["array"]
    parameters = {name.replace("_", " "): value for name, value in parameters.items()}
    if args.preset is not None:
        kind = f"{kind} of {args.preset}, {count} per core"
    name = component.definition_name
    if args.component is None:
        name = args.preset
    return _Asked(component, name, f"{kind}, {size}", systolic_command(args), parameters, notes)


def _of_chip(args: argparse.Namespace) -> _Asked:
    """Request of a chip, or of a component of the table."""
    from hw.arch.config import named
    from hw.chip import Chip
    from sim.cli.port_notes import matrix_notes

    given = args.config or DEFAULT_CONFIG
    config = load_config(given)
    # By content, because neither name nor location of a file is the same everywhere.
    known = next((name for name in named if named[name] == config), None)
    command = f"--config {known or 'FILE.toml'}"
    parameters = dict(_flat(config.parameters()))
    with validating("--config"):
        if args.component is None:
            require_no_settings(args)
            name = given if given in named else Path(given).stem
            return _Asked(Chip(config), name, _chip(config), command, parameters, None)
    unit, values = stand_alone(args, config)
    entry = COMPONENTS[args.component]
    command = f"{f'{command} ' * entry.of_chip}--component {entry.name}"
    command += "".join(f" --set {name}={value}" for name, value in values.items())
    notes = None
    if entry.name == "matrix_unit":
        notes = matrix_notes(config.grid_rows, config.grid_columns, config.pcu.operands)
    if values or not entry.of_chip:
        parameters = dict(values)
    return _Asked(unit, unit.definition_name, entry.summary, command, parameters, notes)


def _chip(config: ChipConfig) -> str:
    return f"chip, {config.rows} x {config.columns} tiles"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Parameters of all tables, named as in a configuration file."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


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
    asked = _asked(args)
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
