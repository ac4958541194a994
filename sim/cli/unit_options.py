"""Options of stand-alone matrix units, arrays and tensor units."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hw.arch.checks import Domain
from hw.arch.errors import BadInputError, did_you_mean
from hw.array.unit_parameters import (
    ACCUMULATOR_ROWS,
    ADDER,
    BIAS,
    BUFFER_ROWS,
    COLUMNS,
    DATAFLOW,
    FORMAT,
    FORMATS,
    INSTRUCTIONS,
    LATENCY,
    MULTIPLIER,
    OUT,
    PAIRS,
    RESULT_ROWS,
    ROWS,
    TILES_AHEAD,
    UnitParameter,
)
from hw.numeric.formats import named
from sim.cli.options import integer, power
from sim.rules import validating

if TYPE_CHECKING:
    from hw.array.dataflow import ArrayConfig
    from hw.array.factory import SystolicArray
    from hw.emit.shared import Shareable
    from hw.matrix.systolic_unit import SystolicUnit
    from hw.matrix.unit_config import UnitConfig
    from hw.numeric.formats import Format
    from hw.tpu.tensor_config import TensorConfig
    from hw.tpu.tensor_top import TensorTop
    from hw.tpu.unit import TensorUnit

__all__ = [
    "COMPONENT",
    "COMPONENTS",
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
_TENSOR_TOP = "tensor_top"
_TENSORS = (_TENSOR, _TENSOR_TOP)

#: Names that ``--component`` accepts of these units.
COMPONENTS = (COMPONENT, _ARRAY, *_TENSORS)
#: Testbenches that take the options of their unit.
_BENCHES = {COMPONENT: COMPONENT, _TENSOR: _TENSOR, "tensor_host": _TENSOR_TOP}

#: Presets. `hw.matrix.tpu_catalog` is too slow to import for a help text; a test compares them.
PRESET_NAMES = ("tpu-v1", "tpu-v2", "tpu-v3", "tpu-v4i", "tpu-v4", "tpu-v5p", "tpu-v7")

#: Parameters of the units and the components that have them: first those of a unit under test.
_TESTED = {
    **dict.fromkeys((ROWS, COLUMNS, DATAFLOW, FORMAT, LATENCY, MULTIPLIER), COMPONENTS),
    **dict.fromkeys((ACCUMULATOR_ROWS, ADDER), (COMPONENT, *_TENSORS)),
    BUFFER_ROWS: _TENSORS,
}
#: Parameters of what an output-stationary unit does not have.
_OF_STATIONARY = (ACCUMULATOR_ROWS, TILES_AHEAD)
_PARAMETERS = {
    **_TESTED,
    **dict.fromkeys((OUT, BIAS, TILES_AHEAD, RESULT_ROWS), (COMPONENT, *_TENSORS)),
    INSTRUCTIONS: (_TENSOR_TOP,),
}


def _option(parameter: UnitParameter) -> str:
    return f"--{parameter.name.replace('_', '-')}"


def _given(args: argparse.Namespace) -> list[UnitParameter]:
    return [each for each in _PARAMETERS if getattr(args, each.name, None) is not None]


def _chosen(args: argparse.Namespace, parameter: UnitParameter) -> Any:
    """Value of a parameter: as given, otherwise the default."""
    value = getattr(args, parameter.name)
    return parameter.default if value is None else value


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
    _add_parameters(group, _PARAMETERS)
    group.add_argument(
        "--raw-edges",
        action="store_true",
        help=f"{_ARRAY} without skew registers: its environment delays the lanes",
    )


def add_bench_unit(parser: argparse.ArgumentParser) -> None:
    """Register the options of the unit under test of a testbench."""
    benches = " or ".join(_BENCHES.values())
    group = parser.add_argument_group("unit under test", f"of {benches} (default: its own)")
    _add_parameters(group, _TESTED)


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


def _add_parameters(group: argparse._ArgumentGroup, parameters: Iterable[UnitParameter]) -> None:
    for each in parameters:
        values = each.values
        words: dict[str, Any] = {"metavar": "FMT"}
        if isinstance(values, Domain):
            convert = power if values.power else integer
            letter = "N" if "_" in each.name else each.name[0].upper()
            words = {"type": convert(values.low, values.high), "metavar": letter}
        elif values is not None:
            words = {"choices": values, "metavar": "|".join(values)}
        elif each is BIAS:
            words = {"action": "store_const", "const": True}
        elif each is FORMAT:
            words = {"type": _formats, "metavar": "FMT[,FMT]"}
        default = f" (default {each.default})" if each.default else ""
        group.add_argument(_option(each), help=each.help + default, **words)


def asks_for_systolic(args: argparse.Namespace) -> bool:
    """Whether the options request a stand-alone matrix unit, an array or a tensor unit.

    Raises
    ------
    BadInputError
        If an option of such a unit is given without it, or together with a preset that sets it; or
        if ``--config`` is given together with such a unit.
    """
    given = _given(args)
    wanted = args.component in COMPONENTS or args.preset is not None
    units = COMPONENT, *_TENSORS
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
    for each in given:
        if not wanted or args.preset is not None:
            misplaced[each.name] = f"{' or '.join(COMPONENTS)} and without --preset"
        elif args.component not in _PARAMETERS[each]:
            misplaced[each.name] = " or ".join(_PARAMETERS[each])
    if args.raw_edges and args.component != _ARRAY:
        misplaced["raw_edges"] = _ARRAY
    for name, component in misplaced.items():
        option, rule = f"--{name.replace('_', '-')}", f"must come with --component {component}"
        raise BadInputError(f"{option} {rule}", where=option, value=getattr(args, name), rule=rule)
    return wanted


def systolic_component(
    args: argparse.Namespace, config: UnitConfig
) -> SystolicArray | SystolicUnit | TensorUnit | TensorTop:
    """Build the requested unit, or its array alone."""
    from hw.array.factory import systolic_array
    from hw.matrix.systolic_unit import SystolicUnit

    tensor = tensor_config(args, config)
    if tensor is not None:
        from hw.tpu.tensor_top import TensorTop
        from hw.tpu.unit import TensorUnit

        if args.component == _TENSOR_TOP:
            return TensorTop(tensor, instructions=_chosen(args, INSTRUCTIONS))
        return TensorUnit(tensor)
    if args.component == _ARRAY:
        return systolic_array(config.array, skewed=not args.raw_edges)
    return SystolicUnit(config)


def tensor_config(args: argparse.Namespace, config: UnitConfig) -> TensorConfig | None:
    """Parameters of the requested tensor unit; some presets are tensor units."""
    from hw.matrix.tpu_catalog import PRESETS
    from hw.tpu.tensor_config import TensorConfig

    if args.preset is None:
        if args.component not in _TENSORS:
            return None
        with validating(f"--component {args.component}"):
            return TensorConfig(config, _chosen(args, BUFFER_ROWS))
    tensor = None if args.component == COMPONENT else PRESETS[args.preset].tensor
    if tensor is None and args.component in _TENSORS:
        names = ", ".join(name for name, preset in PRESETS.items() if preset.buffer_rows)
        raise BadInputError(
            f"--preset of a {args.component} must be one of {names}, not {args.preset!r}",
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
    given = _given(args)
    if not given:
        return None
    option = _option(given[0])
    if args.block not in _BENCHES:
        rule = f"must come with BLOCK {' or '.join(_BENCHES.values())}"
        raise BadInputError(
            f"{option} {rule}", where=option, value=getattr(args, given[0].name), rule=rule
        )
    from sim.cocotb.unit_choice import environment_of
    from sim.native.bundle import Bundle

    # Options that a testbench does not take have their defaults.
    names = (each.name for each in _PARAMETERS)
    absent = dict.fromkeys((*names, "preset", "config")) | {"raw_edges": False}
    asked = argparse.Namespace(**absent | vars(args) | {"component": _BENCHES[args.block]})
    asks_for_systolic(asked)
    config, _ = systolic_config(asked)
    tensor = tensor_config(asked, config)
    name = config.array.dataflow.value if tensor is None else "unit"
    return (
        Bundle({name: systolic_component(asked, config)}),
        environment_of(config, None if tensor is None else tensor.buffer_rows),
        "".join(f" {_option(each)} {getattr(args, each.name)}" for each in given),
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
    multiplier = _chosen(args, MULTIPLIER)
    with validating(f"--component {args.component}"):
        array = ArrayConfig(
            rows=_chosen(args, ROWS),
            columns=_chosen(args, COLUMNS),
            dataflow=Dataflow(_chosen(args, DATAFLOW)),
            formats=tuple(named[word] for word in _chosen(args, FORMAT).split(",")),
            latency=_chosen(args, LATENCY),
            hard_blocks=() if multiplier == MULTIPLIER.default else (multiplier,),
        )
        _require_effects(args, array)
        others = (ACCUMULATOR_ROWS, ADDER, BIAS, TILES_AHEAD, RESULT_ROWS)
        fields = {each.name: _chosen(args, each) for each in others}
        return UnitConfig(array, out=_out(args.out, array, args.component), **fields), 1


def _out(word: str | None, array: ArrayConfig, component: str) -> Format | None:
    """Requested result format; of a tensor unit by default that of its operands."""
    from hw.matrix.unit_config import result_formats

    allowed = result_formats(array)
    if component in _TENSORS and len(array.formats) == 1:
        _require_chained(array.formats[0], component)
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


def _require_chained(fmt: Format, component: str) -> None:
    """Refuse operands of a tensor unit that results, the operands of a next layer, cannot be."""
    if not fmt.is_stored:
        names = ", ".join(name for name in FORMATS if named[name].is_stored)
        raise BadInputError(
            f"--format of a {component} must be one of {names}, which results can have, "
            f"not {fmt.name}",
            kind="bad-value",
            where="--format",
            value=fmt.name,
            rule=f"one of {names}",
        )


def _require_effects(args: argparse.Namespace, array: ArrayConfig) -> None:
    """Refuse options that change nothing of a unit with this array."""
    rules = dict.fromkeys(
        (each for each in _OF_STATIONARY if array.dataflow.value == "os"),
        f"must come with --dataflow ws or is, not {array.dataflow.value}",
    )
    if array.hard_blocks and "int8" not in (fmt.name for fmt in array.formats):
        names = ",".join(fmt.name for fmt in array.formats)
        rules[MULTIPLIER] = f"must come with a --format that has int8, not {names}"
    for each, rule in rules.items():
        value = getattr(args, each.name)
        if value is not None:
            option = _option(each)
            raise BadInputError(
                f"{option} {rule}: it changes nothing there", where=option, value=value, rule=rule
            )


def systolic_command(args: argparse.Namespace) -> str:
    """Command-line options that reproduce a unit, defaults included."""
    words = [] if args.preset is None else [f"--preset {args.preset}"]
    words += [] if args.component is None else [f"--component {args.component}"]
    if args.preset is not None:
        return " ".join(words)
    absent = _OF_STATIONARY if _chosen(args, DATAFLOW) == "os" else ()
    for each, components in _PARAMETERS.items():
        if each in absent:
            continue
        value = _chosen(args, each)
        # A result FIFO of 0 rows is as deep as full throughput needs.
        if args.component in components and value not in (None, False):
            words.append(_option(each) if value is True else f"{_option(each)} {value}")
    return " ".join([*words, *(["--raw-edges"] if args.raw_edges else [])])
