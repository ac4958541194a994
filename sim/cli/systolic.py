"""Options that describe a stand-alone matrix unit, for the sub-commands that take one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.errors import BadInputError, did_you_mean
from sim.cli.options import integer, validating

if TYPE_CHECKING:
    from hw.systolic.unit_config import UnitConfig

__all__ = ["COMPONENT", "add_systolic", "asks_for_systolic", "systolic_config"]

#: What ``--component`` calls it.
COMPONENT = "systolic"

_DEFAULTS: dict[str, Any] = {
    "rows": 16,
    "cols": 16,
    "dataflow": "ws",
    "format": "bf16",
    "latency": 1,
    "accumulator_rows": 512,
    "out": None,
}


def add_systolic(parser: argparse.ArgumentParser) -> None:
    """Register the options of a stand-alone matrix unit."""
    group = parser.add_argument_group(
        "stand-alone matrix unit", f"with --component {COMPONENT}, or a preset"
    )
    group.add_argument("--preset", metavar="NAME", help="unit of a known processor, as tpu-v1")
    group.add_argument("--rows", type=integer(0), metavar="R", help="rows of cells (default 16)")
    group.add_argument("--cols", type=integer(0), metavar="C", help="columns (default 16)")
    group.add_argument("--dataflow", metavar="ws|os|is", help="what stays (default ws)")
    group.add_argument(
        "--format", metavar="FMT[,FMT]", help="operand format, or two of one cell (default bf16)"
    )
    group.add_argument(
        "--latency", type=integer(0), metavar="L", help="registers on the sum path (default 1)"
    )
    group.add_argument(
        "--accumulator-rows", type=integer(0), metavar="N", help="accumulators (default 512)"
    )
    group.add_argument("--out", metavar="FMT", help="format of the results (default that of sums)")


def asks_for_systolic(args: argparse.Namespace) -> bool:
    """Whether a stand-alone matrix unit is wanted.

    Raises
    ------
    BadInputError
        If an option of one is given without it, or beside a preset that sets it.
    """
    given = [name for name in _DEFAULTS if getattr(args, name) is not None]
    wanted = args.component == COMPONENT or args.preset is not None
    if args.preset is not None and args.component not in (None, COMPONENT):
        raise BadInputError(
            f"--preset must come with --component {COMPONENT}, not {args.component!r}",
            where="--preset",
            value=args.preset,
        )
    if given and (not wanted or args.preset is not None):
        option = f"--{given[0].replace('_', '-')}"
        rule = f"must come with --component {COMPONENT} and without --preset"
        raise BadInputError(
            f"{option} {rule}", where=option, value=getattr(args, given[0]), rule=rule
        )
    return wanted


def systolic_config(args: argparse.Namespace) -> tuple[UnitConfig, int]:
    """Parameters of the unit asked for, and how many a core has.

    Raises
    ------
    BadInputError
        If there is no such unit.
    """
    from hw.numeric.formats import named
    from hw.systolic.dataflow import ArrayConfig, Dataflow
    from hw.systolic.preset import PRESETS
    from hw.systolic.unit_config import UnitConfig

    if args.preset is not None:
        if args.preset not in PRESETS:
            names = ", ".join(PRESETS)
            raise BadInputError(
                f"unknown preset {args.preset!r}"
                f"{did_you_mean(args.preset, PRESETS) or f'; known: {names}'}",
                kind="unknown-preset",
                where="--preset",
                value=args.preset,
                rule=f"one of {names}",
            )
        return PRESETS[args.preset].config, PRESETS[args.preset].units
    chosen: dict[str, Any] = {
        name: default if getattr(args, name) is None else getattr(args, name)
        for name, default in _DEFAULTS.items()
    }
    words = {"--format": chosen["format"].split(",")}
    if chosen["out"] is not None:
        words["--out"] = [chosen["out"]]
    for option, chosen_words in words.items():
        for word in chosen_words:
            if word not in named:
                known = ", ".join(named)
                raise BadInputError(
                    f"{option} must be of {known}, not {word!r}{did_you_mean(word, named)}",
                    where=option,
                    value=word,
                    rule=f"one of {known}",
                )
    flows = [each.value for each in Dataflow]
    if chosen["dataflow"] not in flows:
        raise BadInputError(
            f"--dataflow must be one of {', '.join(flows)}, not {chosen['dataflow']!r}",
            where="--dataflow",
            value=chosen["dataflow"],
            rule=f"one of {', '.join(flows)}",
        )
    with validating(f"--component {COMPONENT}"):
        array = ArrayConfig(
            rows=chosen["rows"],
            columns=chosen["cols"],
            dataflow=Dataflow(chosen["dataflow"]),
            formats=tuple(named[word] for word in words["--format"]),
            latency=chosen["latency"],
        )
        out = None if chosen["out"] is None else named[chosen["out"]]
        return UnitConfig(array, accumulator_rows=chosen["accumulator_rows"], out=out), 1
