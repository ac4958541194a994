"""Options that describe a stand-alone matrix unit, its array alone, or a tensor unit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.errors import BadInputError, did_you_mean
from sim.cli.options import integer, validating

if TYPE_CHECKING:
    from hw.shared import Shareable
    from hw.systolic.tensor.config import TensorConfig
    from hw.systolic.tensor.unit import TensorUnit
    from hw.systolic.unit import SystolicArray, SystolicUnit
    from hw.systolic.unit_config import UnitConfig

__all__ = [
    "COMPONENT",
    "COMPONENTS",
    "add_bench_unit",
    "add_systolic",
    "asks_for_systolic",
    "bench_unit",
    "component_name",
    "systolic_component",
    "systolic_config",
]

#: What ``--component`` calls the unit.
COMPONENT = "systolic"
_ARRAY = "array"

_TENSOR = "tensor_unit"

#: What it takes of all.
COMPONENTS = (COMPONENT, _ARRAY, _TENSOR)

_DEFAULTS: dict[str, Any] = {
    "rows": 16,
    "cols": 16,
    "dataflow": "ws",
    "format": "bf16",
    "latency": 1,
    "accumulator_rows": 512,
    "adder": "top",
    "out": None,
    "buffer_rows": 4096,
}

#: Options that only some components have.
_ONLY_OF = {
    "accumulator_rows": (COMPONENT, _TENSOR),
    "adder": (COMPONENT, _TENSOR),
    "out": (COMPONENT, _TENSOR),
    "buffer_rows": (_TENSOR,),
}


def component_name(text: str) -> str:
    """Type of an option: a name of ours, with hyphens or with underscores."""
    return text.replace("-", "_")


def add_systolic(parser: argparse.ArgumentParser) -> None:
    """Register the options of a stand-alone matrix unit, its array alone, or a tensor unit."""
    group = parser.add_argument_group(
        "stand-alone matrix unit", f"with --component {' or '.join(COMPONENTS)}, or a preset"
    )
    group.add_argument("--preset", metavar="NAME", help="unit of a known processor, as tpu-v1")
    _add_sizes(group)
    group.add_argument("--out", metavar="FMT", help="format of the results (default that of sums)")
    group.add_argument(
        "--raw-edges",
        action="store_true",
        help=f"of an {_ARRAY}: its neighbour delays the lanes of a vector",
    )


def add_bench_unit(parser: argparse.ArgumentParser) -> None:
    """Register the options of the unit that a bench is to test."""
    benches = f"{COMPONENT} or {_TENSOR}"
    _add_sizes(parser.add_argument_group("unit under test", f"of {benches}; default the bench's"))


def _add_sizes(group: argparse._ArgumentGroup) -> None:
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
    group.add_argument(
        "--adder",
        metavar="top|bottom",
        help="where sums of successive tiles meet: in the array, or below it (default top)",
    )
    group.add_argument(
        "--buffer-rows",
        type=integer(0),
        metavar="N",
        help=f"vectors of the unified buffer of a {_TENSOR} (default 4096)",
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
    units = COMPONENT, _TENSOR
    if args.preset is not None and args.component not in (None, *units):
        raise BadInputError(
            f"--preset must come with --component {' or '.join(units)}, not {args.component!r}",
            where="--preset",
            value=args.preset,
        )
    misplaced: dict[str, str] = {}
    if not wanted or args.preset is not None:
        misplaced |= dict.fromkeys(given, f"{' or '.join(COMPONENTS)} and without --preset")
    else:
        misplaced |= {
            name: " or ".join(_ONLY_OF[name])
            for name in given
            if args.component not in _ONLY_OF.get(name, COMPONENTS)
        }
    if args.raw_edges and args.component != _ARRAY:
        misplaced["raw_edges"] = _ARRAY
    for name, component in misplaced.items():
        option, rule = f"--{name.replace('_', '-')}", f"must come with --component {component}"
        raise BadInputError(f"{option} {rule}", where=option, value=getattr(args, name), rule=rule)
    return wanted


def systolic_component(
    args: argparse.Namespace, config: UnitConfig
) -> SystolicArray | SystolicUnit | TensorUnit:
    """The unit asked for, or its array alone."""
    from hw.systolic.unit import systolic_array, systolic_unit

    tensor = _tensor_config(args, config)
    if tensor is not None:
        from hw.systolic.tensor.unit import TensorUnit

        return TensorUnit(tensor)
    if args.component == _ARRAY:
        return systolic_array(config.array, skewed=not args.raw_edges)
    return systolic_unit(config)


def _tensor_config(args: argparse.Namespace, config: UnitConfig) -> TensorConfig | None:
    """Parameters of the tensor unit asked for; a preset that has one is one."""
    from hw.systolic.preset import PRESETS
    from hw.systolic.tensor.config import TensorConfig

    if args.preset is None:
        if args.component != _TENSOR:
            return None
        rows = _DEFAULTS["buffer_rows"] if args.buffer_rows is None else args.buffer_rows
        with validating(f"--component {_TENSOR}"):
            return TensorConfig(config, rows)
    tensor = None if args.component == COMPONENT else PRESETS[args.preset].tensor
    if tensor is None and args.component == _TENSOR:
        names = ", ".join(name for name, preset in PRESETS.items() if preset.buffer_rows)
        raise BadInputError(
            f"--preset of a {_TENSOR} must be one of {names}, not {args.preset!r}",
            where="--preset",
            value=args.preset,
            rule=f"one of {names}",
        )
    return tensor


def bench_unit(args: argparse.Namespace) -> tuple[Shareable, dict[str, str], str] | None:
    """What a bench is asked to test, the environment that tells it so, and its command line.

    Raises
    ------
    BadInputError
        If the bench tests no such unit, or there is none.
    """
    given = [name for name in _DEFAULTS if getattr(args, name, None) is not None]
    if not given:
        return None
    option = f"--{given[0].replace('_', '-')}"
    if args.block not in (COMPONENT, _TENSOR):
        rule = f"must come with BLOCK {COMPONENT} or {_TENSOR}"
        raise BadInputError(
            f"{option} {rule}", where=option, value=getattr(args, given[0]), rule=rule
        )
    from sim.native.bundle import Bundle
    from sim.tb._asked import environment_of

    asked = argparse.Namespace(
        **vars(args) | {"component": args.block, "preset": None, "out": None, "raw_edges": False}
    )
    asks_for_systolic(asked)
    config, _ = systolic_config(asked)
    tensor = _tensor_config(asked, config)
    name = config.array.dataflow.value if tensor is None else "unit"
    return (
        Bundle({name: systolic_component(asked, config)}),
        environment_of(config, None if tensor is None else tensor.buffer_rows),
        "".join(f" --{name.replace('_', '-')} {getattr(args, name)}" for name in given),
    )


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
        if out is None and args.component == _TENSOR and len(array.formats) == 1:
            out = array.formats[0]
        options = {name: chosen[name] for name in ("accumulator_rows", "adder")}
        return UnitConfig(array, out=out, **options), 1
