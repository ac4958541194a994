"""``tilewright area``: cells, flip-flops and memory bits of a configuration."""

import argparse
from typing import Any

from hw.errors import NotBuiltError
from sim.cli.options import Subparsers, add_config, add_json

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``area``."""
    parser = subparsers.add_parser(
        "area",
        help="estimate the area of a chip, unit by unit",
        description="Estimate the area of a chip, unit by unit, in generic cells.",
    )
    add_config(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Synthesize each kind of unit of ``--config`` once and multiply by its count."""
    raise NotBuiltError("the area table is not built yet")
