"""Options of stand-alone matrix units, arrays and tensor units."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError, did_you_mean
from sim.cli.options import integer, power
from sim.rules import validating

if TYPE_CHECKING:
    from hw.array.dataflow import ArrayConfig
    from hw.emit.shared import Shareable
    from hw.matrix.factory import SystolicArray, SystolicUnit
    from hw.matrix.unit_config import UnitConfig
    from hw.numeric.formats import Format
    from hw.tpu.tensor_config import TensorConfig
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

#: Name of the unit in ``--component``.
COMPONENT = "systolic"
_ARRAY = "array"

_TENSOR = "tensor_unit"

#: Names that ``--component`` accepts of these units.
COMPONENTS = (COMPONENT, _ARRAY, _TENSOR)

#: Formats of operands, alone or two in one cell, and presets. They and the defaults below repeat
#: declarations in modules that are too slow to import for a help text; a test compares them.
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
    """Option type: a name of a component, with hyphens or underscores."""
    return text.replace("-", "_")


def add_systolic(parser: argparse.ArgumentParser) -> None:
    """Register the options of stand-alone matrix units, arrays and tensor units."""
    group = parser.add_argument_group(
        "stand-alone matrix unit", f"with --component {' or '.join(COMPONENTS)}, or with --preset"
    )
    group.add_argument(
        "--preset", metavar="NAME", help=f"unit of a published processor: {', '.join(PRESET_NAMES)}"
    )
    _add_sizes(group)
    group.add_argument(
        "--out",
        metavar="FMT",
        help="result format: int32 or int8; fp32, bf16, fp16, e4m3 or e5m2 (default that of the "
        f"sums; of a {_TENSOR}, that of the operands)",
    )
    group.add_argument(
        "--bias", action="store_const", const=True, help="add a bias stream to the sums"
    )
    group.add_argument(
        "--tiles-ahead",
        type=integer(1, 64),
        metavar="N",
        help="stationary tiles buffered ahead of the one in use (default 1)",
    )
    group.add_argument(
        "--result-rows",
        type=power(1, 1 << 16),
        metavar="N",
        help="depth of the result FIFO in rows (default sufficient for full throughput)",
    )
    group.add_argument(
        "--raw-edges",
        action="store_true",
        help=f"{_ARRAY} without skew registers: its environment delays the lanes",
    )


def add_bench_unit(parser: argparse.ArgumentParser) -> None:
    """Register the options of the unit under test of a testbench."""
    benches = f"{COMPONENT} or {_TENSOR}"
    _add_sizes(parser.add_argument_group("unit under test", f"of {benches} (default: its own)"))


def _formats(text: str) -> str:
    """Option type: an operand format, or two that one cell supports."""
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
    group.add_argument("--rows", type=size, metavar="R", help="rows of the array (default 16)")
    group.add_argument("--cols", type=size, metavar="C", help="columns of the array (default 16)")
    group.add_argument(
        "--dataflow",
        choices=("ws", "os", "is"),
        metavar="ws|os|is",
        help="stationary operand: weights (ws), outputs (os) or inputs (is) (default ws)",
    )
    group.add_argument(
        "--format",
        type=_formats,
        metavar="FMT[,FMT]",
        help=f"operand format: {', '.join(FORMATS)}; or two formats in one cell: "
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
        help="accumulators per column (default 512)",
    )
    group.add_argument(
        "--adder",
        choices=("top", "bottom"),
        metavar="top|bottom",
        help="add sums of successive tiles in the array (top) or below it (bottom) (default top)",
    )
    group.add_argument(
        "--buffer-rows",
        type=integer(2, 1 << 20),
        metavar="N",
        help=f"vectors in the unified buffer of a {_TENSOR} (default 4096)",
    )


def asks_for_systolic(args: argparse.Namespace) -> bool:
    """Whether the options request a stand-alone matrix unit, an array or a tensor unit.

    Raises
    ------
    BadInputError
        If an option of such a unit is given without it, or together with a preset that sets it; or
        if ``--config`` is given together with such a unit.
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
    """Build the requested unit, or its array alone."""
    from hw.matrix.factory import systolic_array, systolic_unit

    tensor = tensor_config(args, config)
    if tensor is not None:
        from hw.tpu.unit import TensorUnit

        return TensorUnit(tensor)
    if args.component == _ARRAY:
        return systolic_array(config.array, skewed=not args.raw_edges)
    return systolic_unit(config)


def tensor_config(args: argparse.Namespace, config: UnitConfig) -> TensorConfig | None:
    """Parameters of the requested tensor unit; some presets are tensor units."""
    from hw.matrix.tpu_catalog import PRESETS
    from hw.tpu.tensor_config import TensorConfig

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
    """The requested unit under test, the environment that selects it, and its options.

    Raises
    ------
    BadInputError
        If the testbench does not test such a unit, or there is no such unit.
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
    from sim.cocotb.unit_choice import environment_of
    from sim.native.bundle import Bundle

    # Options that a testbench does not take have their defaults.
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
    """Parameters of the requested unit, and its number per core.

    Raises
    ------
    BadInputError
        If there is no such unit.
    """
    from hw.array.dataflow import ArrayConfig, Dataflow
    from hw.matrix.tpu_catalog import PRESETS
    from hw.matrix.unit_config import UnitConfig
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
    """Requested result format; of a tensor unit by default that of its operands."""
    from hw.matrix.unit_config import result_formats

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
    """Command-line options that reproduce a unit, defaults included."""
    words = [] if args.preset is None else [f"--preset {args.preset}"]
    words += [] if args.component is None else [f"--component {args.component}"]
    if args.preset is not None:
        return " ".join(words)
    for name, default in _DEFAULTS.items():
        value = default if getattr(args, name) is None else getattr(args, name)
        option = f"--{name.replace('_', '-')}"
        if args.component not in _ONLY_OF.get(name, COMPONENTS) or value in (None, False):
            continue
        # A depth of 0 means the least depth that does not stall results.
        if not (name == "result_rows" and value == 0):
            words.append(option if value is True else f"{option} {value}")
    return " ".join([*words, *(["--raw-edges"] if args.raw_edges else [])])
