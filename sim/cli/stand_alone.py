"""Options of the components of `sim.components`: their parameters by ``--set``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hw.arch.errors import BadInputError
from sim.cli.options import setting, validating
from sim.components import COMPONENTS

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig
    from hw.emit.shared import Shareable

__all__ = ["add_settings", "require_no_settings", "stand_alone"]


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Register the option that sets a parameter of a component."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="parameter of the component; `tilewright list` has names and ranges",
    )


def require_no_settings(args: argparse.Namespace, where: str | None = None) -> None:
    """Refuse ``--set`` where nothing takes it; `where` says what does.

    Raises
    ------
    BadInputError
        If it is given.
    """
    if args.settings:
        rule = f"must be {where}" if where else f"must come with one of {', '.join(COMPONENTS)}"
        raise BadInputError(f"--set {rule}", where="--set", value=args.settings[0][0], rule=rule)


def stand_alone(args: argparse.Namespace, config: ChipConfig) -> tuple[Shareable, dict[str, int]]:
    """Component that the options describe, and the values of its parameters.

    Raises
    ------
    BadInputError
        If a parameter is unknown or out of range, or a configuration is of no use to it.
    """
    entry = COMPONENTS[args.component]
    if args.config is not None and not entry.of_chip:
        rule = f"must come without --component {entry.name}"
        raise BadInputError(
            f"--config {rule}: it is no part of a chip",
            where="--config",
            value=args.config,
            rule=rule,
        )
    values = entry.values(config, args.settings)
    with validating(f"--component {entry.name}"):
        return entry.build(config, values), values
