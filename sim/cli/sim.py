"""``tilewright sim``: cocotb testbenches of the blocks and of the chip."""

import argparse
from typing import Any

from hw.errors import NotBuiltError
from sim.cli.options import Subparsers, add_json, add_seed

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``sim``."""
    parser = subparsers.add_parser(
        "sim",
        help="run the testbench of a block",
        description="Run the cocotb testbench of a block, or all of them.",
    )
    parser.add_argument("block", metavar="BLOCK", nargs="?", help="block to test (default all)")
    parser.add_argument("--list", action="store_true", help="list the blocks")
    parser.add_argument(
        "--simulator",
        choices=("verilator", "icarus"),
        default="verilator",
        help="simulator (default verilator)",
    )
    parser.add_argument("--waves", metavar="FILE.vcd", help="record waves there")
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the testbenches asked for; exit code 0 only if every test passed."""
    raise NotBuiltError("running the testbenches is not built yet")
