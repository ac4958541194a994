"""Options that describe a stand-alone matrix unit or its array alone, for sub-commands."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.errors import BadInputError, did_you_mean
from sim.cli.options import integer, validating

if TYPE_CHECKING:
    from hw.systolic.unit import SystolicArray, SystolicUnit
    from hw.systolic.unit_config import UnitConfig

__all__ = [
    "COMPONENT",
    "COMPONENTS",
    "add_systolic",
    "asks_for_systolic",
    "systolic_component",
    "systolic_config",
]

#: What ``--component`` calls the unit.
COMPONENT = "systolic"
_ARRAY = "array"

#: What it takes of both.
COMPONENTS = (COMPONENT, _ARRAY)

_DEFAULTS: dict[str, Any] = {
    "rows": 16,
    "cols": 16,
    "dataflow": "ws",
    "format": "bf16",
    "latency": 1,
    "accumulator_rows": 512,
    "out": None,
}

#: Options without effect on an array alone.
_OF_UNITS = ("accumulator_rows", "out")


def add_systolic(parser: argparse.ArgumentParser) -> None:
    """Register the options of a stand-alone matrix unit and of its array alone."""
    group = parser.add_argument_group(
        "stand-alone matrix unit", f"with --component {COMPONENT} or {_ARRAY}, or a preset"
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
    group.add_argument(
        "--raw-edges",
        action="store_true",
        help=f"of an {_ARRAY}: its neighbour delays the lanes of a vector",
    )


def asks_for_systolic(args: argparse.Namespace) -> bool:
    """Whether a stand-alone matrix unit, or an array, is wanted.

    Raises
    ------
    BadInputError
        If an option of one is given without it, or beside a preset that sets it.
    """
    given = [name for name in _DEFAULTS if getattr(args, name) is not None]
    wanted = args.component in COMPONENTS or args.preset is not None
    if args.preset is not None and args.component not in (None, COMPONENT):
        raise BadInputError(
            f"--preset must come with --component {COMPONENT}, not {args.component!r}",
            where="--preset",
            value=args.preset,
        )
    bare = args.component == _ARRAY
    misplaced: dict[str, str] = {}
    if not wanted or args.preset is not None:
        misplaced |= dict.fromkeys(given, f"{COMPONENT} or {_ARRAY} and without --preset")
    elif bare:
        misplaced |= {name: COMPONENT for name in given if name in _OF_UNITS}
    if args.raw_edges and not bare:
        misplaced["raw_edges"] = _ARRAY
    for name, component in misplaced.items():
        option, rule = f"--{name.replace('_', '-')}", f"must come with --component {component}"
        raise BadInputError(f"{option} {rule}", where=option, value=getattr(args, name), rule=rule)
    return wanted


def systolic_component(
    args: argparse.Namespace, config: UnitConfig
) -> SystolicArray | SystolicUnit:
    """The unit asked for, or its array alone."""
    from hw.systolic.unit import systolic_array, systolic_unit

    if args.component == _ARRAY:
        return systolic_array(config.array, skewed=not args.raw_edges)
    return systolic_unit(config)


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
    with validating(f"--component {args.component}"):
        array = ArrayConfig(
            rows=chosen["rows"],
            columns=chosen["cols"],
            dataflow=Dataflow(chosen["dataflow"]),
            formats=tuple(named[word] for word in words["--format"]),
            latency=chosen["latency"],
        )
        out = None if chosen["out"] is None else named[chosen["out"]]
        return UnitConfig(array, accumulator_rows=chosen["accumulator_rows"], out=out), 1
