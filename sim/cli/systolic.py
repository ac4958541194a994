"""Options that describe a stand-alone matrix unit, its array alone, or a tensor unit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError, did_you_mean
from sim.cli.options import integer, power, validating

if TYPE_CHECKING:
    from hw.array.dataflow import ArrayConfig
    from hw.emit.shared import Shareable
    from hw.matrix.config import UnitConfig
    from hw.matrix.unit import SystolicArray, SystolicUnit
    from hw.numeric.formats import Format
    from hw.tpu.config import TensorConfig
    from hw.tpu.unit import TensorUnit

__all__ = [
    "COMPONENT",
    "COMPONENTS",
    "FORMATS",
    "PAIRS",
    "PRESET_NAMES",
    "add_bench_unit",
    "add_systolic",
    "asks_for_systolic",
    "bench_unit",
    "component_name",
    "systolic_command",
    "systolic_component",
    "systolic_config",
    "tensor_config",
]

#: What ``--component`` calls the unit.
COMPONENT = "systolic"
_ARRAY = "array"

_TENSOR = "tensor_unit"

#: What it takes of all.
COMPONENTS = (COMPONENT, _ARRAY, _TENSOR)

#: Formats of operands, alone or two of one cell, and presets. As numbers below, they are told again
#: because what has them is too slow to import for a help; a test compares.
FORMATS = ("bf16", "fp16", "int8", "e4m3", "e5m2", "e2m1", "int4", "mxe4m3", "mxe5m2", "mxe2m1")
PAIRS = ("bf16,int8", "bf16,fp16", "e4m3,e5m2", "mxe4m3,mxe5m2")
PRESET_NAMES = ("tpu-v1", "tpu-v2", "tpu-v3", "tpu-v4i", "tpu-v4", "tpu-v5p", "tpu-v7")

_DEFAULTS: dict[str, Any] = {
    "rows": 16,
    "cols": 16,
    "dataflow": "ws",
    "format": "bf16",
    "latency": 1,
    "accumulator_rows": 512,
    "adder": "top",
    "out": None,
    "bias": False,
    "tiles_ahead": 1,
    "result_rows": 0,
    "buffer_rows": 4096,
}

#: Options that only some components have.
_ONLY_OF = {
    "accumulator_rows": (COMPONENT, _TENSOR),
    "adder": (COMPONENT, _TENSOR),
    "out": (COMPONENT, _TENSOR),
    "bias": (COMPONENT, _TENSOR),
    "tiles_ahead": (COMPONENT, _TENSOR),
    "result_rows": (COMPONENT, _TENSOR),
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
    group.add_argument(
        "--preset", metavar="NAME", help=f"unit of a known processor: {', '.join(PRESET_NAMES)}"
    )
    _add_sizes(group)
    group.add_argument(
        "--out",
        metavar="FMT",
        help="format of the results: int32 or int8; fp32, bf16, fp16, e4m3 or e5m2 (default that "
        f"of sums; of a {_TENSOR}, of operands)",
    )
    group.add_argument(
        "--bias", action="store_const", const=True, help="a stream of biases is added to sums"
    )
    group.add_argument(
        "--tiles-ahead",
        type=integer(1, 64),
        metavar="N",
        help="stationary tiles that are queued (default 1)",
    )
    group.add_argument(
        "--result-rows",
        type=power(1, 1 << 16),
        metavar="N",
        help="rows of results that are queued (default as many as keep them flowing)",
    )
    group.add_argument(
        "--raw-edges",
        action="store_true",
        help=f"of an {_ARRAY}: its neighbour delays the lanes of a vector",
    )


def add_bench_unit(parser: argparse.ArgumentParser) -> None:
    """Register the options of the unit that a bench is to test."""
    benches = f"{COMPONENT} or {_TENSOR}"
    _add_sizes(parser.add_argument_group("unit under test", f"of {benches}; default the bench's"))


def _formats(text: str) -> str:
    """Type of an option: a format of operands, or two that one cell can have."""
    words = text.split(",")
    if text in FORMATS or any(sorted(words) == sorted(pair.split(",")) for pair in PAIRS):
        return text
    unknown = [word for word in words if word not in FORMATS]
    near = did_you_mean(unknown[0], FORMATS) if unknown else ""
    raise argparse.ArgumentTypeError(
        f"must be one of {', '.join(FORMATS)}, or a pair out of {' '.join(PAIRS)}, "
        f"not {text!r}{near}"
    )


def _add_sizes(group: argparse._ArgumentGroup) -> None:
    size = integer(1, 1024)
    group.add_argument("--rows", type=size, metavar="R", help="rows of cells (default 16)")
    group.add_argument("--cols", type=size, metavar="C", help="columns (default 16)")
    group.add_argument(
        "--dataflow",
        choices=("ws", "os", "is"),
        metavar="ws|os|is",
        help="what stays: weights, sums (outputs) or activations (inputs) (default ws)",
    )
    group.add_argument(
        "--format",
        type=_formats,
        metavar="FMT[,FMT]",
        help=f"operand format: {', '.join(FORMATS)}; or two of one cell: "
        f"{' '.join(PAIRS)} (default bf16)",
    )
    group.add_argument(
        "--latency",
        type=integer(1, 3),
        metavar="L",
        help="registers on the sum path, 1 to 3 (default 1)",
    )
    group.add_argument(
        "--accumulator-rows",
        type=integer(1, 1 << 16),
        metavar="N",
        help="accumulators of a column (default 512)",
    )
    group.add_argument(
        "--adder",
        choices=("top", "bottom"),
        metavar="top|bottom",
        help="where sums of successive tiles meet: in the array, or below it (default top)",
    )
    group.add_argument(
        "--buffer-rows",
        type=integer(2, 1 << 20),
        metavar="N",
        help=f"vectors of the unified buffer of a {_TENSOR} (default 4096)",
    )


def asks_for_systolic(args: argparse.Namespace) -> bool:
    """Whether a stand-alone matrix unit, or an array, is wanted.

    Raises
    ------
    BadInputError
        If an option of one is given without it, or beside a preset that sets it; or a chip's
        configuration beside one.
    """
    given = [name for name in _DEFAULTS if getattr(args, name) is not None]
    wanted = args.component in COMPONENTS or args.preset is not None
    units = COMPONENT, _TENSOR
    if wanted and args.config is not None:
        rule = f"must come without --preset and --component {' or '.join(COMPONENTS)}"
        raise BadInputError(
            f"--config {rule}: they are no part of a chip",
            where="--config",
            value=args.config,
            rule=rule,
        )
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
    from hw.matrix.unit import systolic_array, systolic_unit

    tensor = tensor_config(args, config)
    if tensor is not None:
        from hw.tpu.unit import TensorUnit

        return TensorUnit(tensor)
    if args.component == _ARRAY:
        return systolic_array(config.array, skewed=not args.raw_edges)
    return systolic_unit(config)


def tensor_config(args: argparse.Namespace, config: UnitConfig) -> TensorConfig | None:
    """Parameters of the tensor unit asked for; a preset that has one is one."""
    from hw.matrix.tpu_catalog import PRESETS
    from hw.tpu.config import TensorConfig

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

    # What a bench is not asked for has its default.
    absent = dict.fromkeys((*_DEFAULTS, "preset", "config")) | {"raw_edges": False}
    asked = argparse.Namespace(**absent | vars(args) | {"component": args.block})
    asks_for_systolic(asked)
    config, _ = systolic_config(asked)
    tensor = tensor_config(asked, config)
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
    from hw.array.dataflow import ArrayConfig, Dataflow
    from hw.matrix.config import UnitConfig
    from hw.matrix.tpu_catalog import PRESETS
    from hw.numeric.formats import named

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
    with validating(f"--component {args.component}"):
        array = ArrayConfig(
            rows=chosen["rows"],
            columns=chosen["cols"],
            dataflow=Dataflow(chosen["dataflow"]),
            formats=tuple(named[word] for word in chosen["format"].split(",")),
            latency=chosen["latency"],
        )
        out = _out(chosen["out"], array, args.component)
        others = ("accumulator_rows", "adder", "bias", "tiles_ahead", "result_rows")
        return UnitConfig(array, out=out, **{name: chosen[name] for name in others}), 1


def _out(word: str | None, array: ArrayConfig, component: str) -> Format | None:
    """Format of the results asked for; those of a tensor unit have that of its operands."""
    from hw.matrix.config import result_formats

    allowed = result_formats(array)
    if component == _TENSOR and len(array.formats) == 1:
        allowed = array.formats
        word = word or allowed[0].name
    if word is None:
        return None
    known = {fmt.name: fmt for fmt in allowed}
    if word not in known:
        formats = " and ".join(fmt.name for fmt in array.formats)
        rule = f"must be one of {', '.join(known)}" if known else "must not be given"
        raise BadInputError(
            f"--out {rule} with operands of {formats}, not {word!r}{did_you_mean(word, known)}",
            kind="bad-value",
            where="--out",
            value=word,
            rule=rule,
        )
    return known[word]


def systolic_command(args: argparse.Namespace) -> str:
    """Options that ask for the same again, every default told."""
    words = [] if args.preset is None else [f"--preset {args.preset}"]
    words += [] if args.component is None else [f"--component {args.component}"]
    if args.preset is not None:
        return " ".join(words)
    for name, default in _DEFAULTS.items():
        value = default if getattr(args, name) is None else getattr(args, name)
        option = f"--{name.replace('_', '-')}"
        if args.component not in _ONLY_OF.get(name, COMPONENTS) or value in (None, False):
            continue
        # A queue of no size has the least that does not stop results.
        if not (name == "result_rows" and value == 0):
            words.append(option if value is True else f"{option} {value}")
    return " ".join([*words, *(["--raw-edges"] if args.raw_edges else [])])
