"""``tilewright verilog``: the Verilog of a configuration."""

import argparse
from typing import Any

from hw.errors import NotBuiltError
from sim.cli.options import Subparsers, add_config, add_json

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``verilog``."""
    parser = subparsers.add_parser(
        "verilog",
        help="emit the Verilog of a chip",
        description="Emit the Verilog of a chip.",
    )
    add_config(parser)
    parser.add_argument("-o", "--output", metavar="FILE.v", help="file to write")
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Emit the chip of ``--config`` to ``--output``."""
    raise NotBuiltError("emitting a chip's Verilog is not built yet")
