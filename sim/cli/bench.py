"""``tilewright bench``: our figures beside those of peers."""

import argparse
from typing import Any

from hw.errors import NotBuiltError
from sim.cli.options import Subparsers, add_json, add_seed

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``bench``."""
    parser = subparsers.add_parser(
        "bench",
        help="measure and compare with peers",
        description="Measure cycles and utilization, and compare them with peers.",
    )
    parser.add_argument("--quick", action="store_true", help="three matmuls only")
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Run the benchmarks and tabulate ratios to peers."""
    raise NotBuiltError("the benchmarks are not built yet")
