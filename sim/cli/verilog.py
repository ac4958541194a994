"""``tilewright verilog``: the Verilog of a configuration."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from hw.errors import BadInputError
from sim.cli.options import Subparsers, add_config, add_json, load_config, validating
from sim.cli.systolic import (
    COMPONENTS,
    add_systolic,
    asks_for_systolic,
    component_name,
    systolic_component,
    systolic_config,
)
from sim.files import require_writable, write_whole

if TYPE_CHECKING:
    from hw.shared import Shareable

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``verilog``."""
    parser = subparsers.add_parser(
        "verilog",
        help="emit the Verilog of a chip or of one component",
        description="Emit the Verilog of a chip, or of one component of it.",
    )
    add_config(parser)
    parser.add_argument(
        "--component",
        type=component_name,
        choices=("matrix_unit", *COMPONENTS),
        help="emit this component alone",
    )
    parser.add_argument("-o", "--output", metavar="FILE.v", help="file to write")
    add_systolic(parser)
    add_json(parser)


def _component(args: argparse.Namespace) -> "Shareable":
    """What is to be emitted."""
    from hw.chip import Chip
    from sim.drivers.matrix_unit import matrix_unit

    if asks_for_systolic(args):
        return systolic_component(args, systolic_config(args)[0])
    config = load_config(args.config)
    with validating("--config"):
        return matrix_unit(config) if args.component else Chip(config)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Emit the chip of ``--config``, or a component of it, to ``--output``."""
    component = _component(args)
    if args.output is None:
        raise BadInputError("--output must be given", where="--output", rule="a file to write")
    require_writable(args.output, where="--output")

    from gen.verilog import emit

    started = time.monotonic()
    design = emit(component)
    seconds = time.monotonic() - started
    write_whole(args.output, design.text)
    report = {
        "file": args.output,
        "sha256": design.sha256,
        "top": design.top,
        "bytes": len(design.text.encode()),
        "lines": design.text.count("\n"),
        "modules": len(design.instances),
        "units": design.instances,
        "seconds": seconds,
    }
    print(
        f"{args.output}: module {design.top}, {report['bytes']} bytes, "
        f"{report['modules']} module definitions, {seconds:.1f} s"
    )
    return report
