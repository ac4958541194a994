"""``--set`` for the parameters of the components in `sim.components`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hw.arch.errors import BadInputError
from sim.cli.options import setting
from sim.components import ARRAYS, COMPONENTS
from sim.rules import validating

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig
    from hw.emit.shared import Shareable

__all__ = ["add_settings", "require_no_settings", "stand_alone"]


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Register ``--set`` for parameters of a component."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="component parameter; `tilewright list` shows names and ranges; may be repeated",
    )
    parser.add_argument(
        "--data-bits",
        dest="settings",
        action="append",
        type=_width,
        metavar="BITS",
        help="width of the data, as --set width_bits=BITS",
    )


def _width(text: str) -> tuple[str, object]:
    return setting(f"width_bits={text}")


def require_no_settings(args: argparse.Namespace, where: str | None = None) -> None:
    """Refuse ``--set`` where it does not apply; `where` says where it does.

    Raises
    ------
    BadInputError
        If it is given.
    """
    if args.settings:
        rule = f"must be {where}" if where else f"must come with one of {', '.join(COMPONENTS)}"
        component = getattr(args, "component", None)
        if where is None and component in ARRAYS:
            rule = f"must not come with {component}, whose parameters are options, as --rows"
        raise BadInputError(f"--set {rule}", where="--set", value=args.settings[0][0], rule=rule)


def stand_alone(args: argparse.Namespace, config: ChipConfig) -> tuple[Shareable, dict[str, int]]:
    """The component that the options describe, and the values of its parameters.

    Raises
    ------
    BadInputError
        If a parameter is unknown or out of range, or a configuration is given that is not used.
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
