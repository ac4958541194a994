"""Catalog of stand-alone components for the commands ``verilog``, ``area``, ``sim`` and ``list``.

Each component has parameters with ranges; a unit of a chip takes their defaults from the chip's
configuration. The arrays, which have many options, are listed here and made by
`sim.cli.unit_options`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hw.arch import limits
from hw.arch.checks import Domain
from hw.arch.errors import BadInputError, did_you_mean
from hw.arch.tma_sizes import TmaSizes

if TYPE_CHECKING:
    from hw.arch.config import ChipConfig
    from hw.emit.shared import Shareable

__all__ = ["ARRAYS", "COMPONENTS", "Parameter", "StandAlone"]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """Integer parameter of a component.

    Members
    -------
    name : str
    domain : Domain
        Values that it may have.
    default : int or function of a ChipConfig
        Default value, or a function from the chip to it.
    """

    name: str
    domain: Domain
    default: int | Callable[[ChipConfig], int]

    def checked(self, value: object) -> int:
        """Return the value after a range check.

        Raises
        ------
        BadInputError
            If it is out of range.
        """
        if isinstance(value, int) and self.domain.holds(value):
            return value
        rule = self.domain.rule
        raise BadInputError(
            f"Parameter {self.name} must be {rule}, not {value!r}",
            where="--set",
            value=value,
            rule=rule,
        )


@dataclasses.dataclass(frozen=True)
class StandAlone:
    """A component that can be emitted, measured and tested alone.

    Members
    -------
    name, summary : str
    build : function
        Function from a chip's configuration and the parameter values to the component.
    bench : str or None
        Testbench of `sim.tb` that covers it; ``chip`` if that is the whole chip's.
    parameters : tuple of Parameter
    of_chip : bool
        Whether it depends on the chip's configuration.
    """

    name: str
    summary: str
    build: Callable[[ChipConfig, Mapping[str, int]], Shareable]
    bench: str
    parameters: tuple[Parameter, ...] = ()
    of_chip: bool = True

    def values(self, config: ChipConfig, settings: Sequence[tuple[str, object]]) -> dict[str, int]:
        """Value of each parameter: as set, otherwise the default.

        Raises
        ------
        BadInputError
            If a name is unknown or given twice, or a value out of range.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        given: dict[str, object] = {}
        for name, value in settings:
            if name in given:
                raise BadInputError(
                    f"Parameter {name} must be set once, not to {given[name]} and to {value}",
                    where="--set",
                    value=value,
                    rule="set once",
                )
            given[name] = value
            if name not in known:
                rule = f"one of {', '.join(known)}" if known else "left out: it has none"
                raise BadInputError(
                    f"unknown parameter {name!r} of {self.name}"
                    f"{did_you_mean(name, known) or f'; it must be {rule}'}",
                    where="--set",
                    value=name,
                    rule=rule,
                )
        return {
            name: parameter.checked(given[name])
            if name in given
            else parameter.default
            if isinstance(parameter.default, int)
            else parameter.default(config)
            for name, parameter in known.items()
        }


def _made(component: str, **fixed: str) -> Callable[[ChipConfig, Mapping[str, int]], Shareable]:
    """Function that makes a class, named with its module, with the values as its parameters."""

    def build(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
        module, _, name = component.rpartition(".")
        return cast("Shareable", getattr(importlib.import_module(module), name)(**fixed, **values))

    return build


def _pcu(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
    from hw.pcu.unit import Pcu

    return Pcu(width_bits=config.width_bits, config=config.pcu)


def _agcu(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
    from hw.agcu.unit import Agcu

    return Agcu.of_chip(config)


def _command(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
    from hw.command.processor import CommandProcessor

    return CommandProcessor.of_chip(config)


def _matrix_unit(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
    from sim.drivers.matrix_unit_driver import matrix_unit

    return matrix_unit(config)


def _switch(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
    from hw.lib.stream import vector_layout
    from hw.mesh.switch import Switch

    width_bits = values.get("width_bits")
    ports = {name: value for name, value in values.items() if name != "width_bits"}
    return Switch(payload_shape=vector_layout(width_bits) if width_bits else 0, **ports)


def _tma(component: str) -> Callable[[ChipConfig, Mapping[str, int]], Shareable]:
    """Function that makes a TMA unit, whose sizes are one parameter."""

    def build(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
        sizes = {each.name: values[each.name] for each in _TMA_SIZES}
        others: dict[str, Any] = {name: values[name] for name in values if name not in sizes}
        others["reduces"] = bool(_REDUCES.checked(others["reduces"]))
        module, _, name = component.rpartition(".")
        made = getattr(importlib.import_module(module), name)(TmaSizes(**sizes), **others)
        return cast("Shareable", made)

    return build


def _function(name: str) -> Callable[[ChipConfig, Mapping[str, int]], Shareable]:
    def build(config: ChipConfig, values: Mapping[str, int]) -> Shareable:
        from hw.float.special_functions import UNITS

        return cast("Shareable", UNITS[name](width=values["width"]))

    return build


_WIDTH = Parameter("width_bits", limits.LINK_BITS, lambda chip: chip.width_bits)
_PORTS = (
    Parameter("unit_outputs", limits.SWITCH_UNIT_PORTS, 1),
    Parameter("unit_inputs", limits.SWITCH_UNIT_PORTS, 3),
)
_TMA_SIZES = tuple(
    Parameter(name, domain, getattr(TmaSizes, name))
    for name, domain in (
        ("width_bits", limits.LINK_BITS),
        ("address_bits", limits.AXI_ADDRESS_BITS),
        ("landing_beats", limits.LANDING_BEATS),
        ("outstanding", limits.OUTSTANDING),
        ("read_ids", limits.READ_IDS),
        ("descriptors", limits.CACHED_DESCRIPTORS),
        ("barriers", limits.BARRIERS),
        ("scratchpad_bytes", limits.SCRATCHPAD_BYTES),
        ("scratchpads", limits.SCRATCHPADS),
    )
)
#: Whether a TMA unit has REDUCE.
_REDUCES = Parameter("reduces", Domain(0, 1), 0)

_UNITS = (
    StandAlone("pcu", "compute unit: matrix unit, and lanes, behind filters", _pcu, "pcu"),
    StandAlone("matrix_unit", "matrix unit of a PCU", _matrix_unit, "matrix_unit"),
    StandAlone(
        "pmu",
        "memory unit: conflict-free banks, slots, stream engines",
        _made("hw.pmu.unit.Pmu"),
        "pmu",
        (
            _WIDTH,
            Parameter(
                "capacity_bytes",
                Domain(64, 1 << 24, power=True),
                lambda chip: chip.pmu.capacity_bytes,
            ),
            Parameter("slots", limits.PMU_SLOTS, lambda chip: chip.pmu.slots),
        ),
    ),
    StandAlone(
        "switch",
        "vector switch: eager multicast, ordered merge",
        _switch,
        "switch",
        (_WIDTH, Parameter("tracks", limits.TRACKS, lambda chip: chip.tracks), *_PORTS),
    ),
    StandAlone(
        "token_switch",
        "switch of the token network",
        _switch,
        "switch",
        (Parameter("tracks", limits.TRACKS, lambda chip: chip.token_tracks), *_PORTS),
    ),
    StandAlone(
        "config_segment",
        "configuration segment: shadow and active program",
        _made("hw.lib.config_segment.ConfigSegment"),
        "chip",
        (_WIDTH, Parameter("config_bits", Domain(1, 1 << 16), 100)),
    ),
    StandAlone("agcu", "memory port: loop nests, tokens, a TMA engine", _agcu, "agcu"),
    StandAlone(
        "tma",
        "tensor memory accelerator: boxes of rank 1 to 5 over AXI4",
        _made("hw.tma.engine.TmaEngine"),
        "tma",
        (
            _WIDTH,
            Parameter(
                "address_bits", limits.AXI_ADDRESS_BITS, lambda chip: chip.agcu.axi_address_bits
            ),
            Parameter("landing_beats", limits.LANDING_BEATS, lambda chip: chip.agcu.landing_beats),
            Parameter("outstanding", limits.OUTSTANDING, lambda chip: chip.agcu.outstanding),
            Parameter("descriptors", limits.DESCRIPTOR_COUNT, 8),
            Parameter("load_streams", limits.STREAM_COUNT, 2),
            Parameter("store_streams", limits.STREAM_COUNT, 2),
        ),
    ),
    StandAlone(
        "tma_unit",
        "TMA engine with descriptor cache, scratchpad and barriers, behind streams",
        _tma("hw.tma.standalone.tma_unit.TmaUnit"),
        "tma_host",
        (*_TMA_SIZES, Parameter("ports", Domain(1, limits.BARRIER_PORTS.high - 1), 1), _REDUCES),
        of_chip=False,
    ),
    StandAlone(
        "tma_top",
        "`tma_unit` behind AXI4-Lite registers",
        _tma("hw.tma.host_port.tma_top.TmaTop"),
        "tma_host",
        (
            *_TMA_SIZES,
            Parameter("ports", Domain(1, limits.BARRIER_PORTS.high - 3), 1),
            Parameter("commands", limits.COMMAND_SLOTS, 64),
            _REDUCES,
        ),
        of_chip=False,
    ),
    StandAlone(
        "command",
        "command processor: registers, images, launch lists",
        _command,
        "command",
    ),
    StandAlone(
        "barrier",
        "mbarrier: phase, arrivals, transaction bytes",
        _made("hw.lib.barrier.Barrier"),
        "barrier",
        (
            Parameter("arrivals", limits.BARRIER_ARRIVALS, 7),
            Parameter("tx_bytes", limits.BARRIER_TX_BYTES, 200),
        ),
        of_chip=False,
    ),
    StandAlone(
        "barrier_bank",
        "mbarriers in a memory: operation ports with answers, waits by parity",
        _made("hw.tma.barriers.barrier_bank.BarrierBank"),
        "bank",
        (
            Parameter("barriers", limits.BARRIERS, 32),
            Parameter("arrivals", limits.BARRIER_ARRIVALS, limits.BARRIER_ARRIVALS.high),
            Parameter("tx_bytes", limits.BARRIER_TX_BYTES, limits.BARRIER_TX_BYTES.high),
            Parameter("ports", limits.BARRIER_PORTS, 2),
            Parameter("waiters", limits.BARRIER_WAITERS, 1),
        ),
        of_chip=False,
    ),
)

#: Operations on words of fp32 and what each does; `hw.float.operations` has them.
_OPERATIONS = {
    "add": "a + b",
    "multiply": "a * b",
    "fma": "multiply-accumulate, a * b + c with one rounding",
    "less": "a < b",
    "equal": "a = b",
    "minimum": "the smaller of a and b",
    "maximum": "the larger of a and b",
    "round_to_integral": "nearest integral value, ties to even",
    "to_int32": "cast to int32",
    "from_int32": "cast from int32",
}
#: Functions of one fp32; `hw.float.special_functions` has them.
_FUNCTIONS = {
    "exp": "e^x",
    "exp2": "2^x",
    "log2": "logarithm of base 2",
    "reciprocal": "1 / x",
    "rsqrt": "1 / sqrt(x)",
    "sigmoid": "1 / (1 + e^-x)",
    "tanh": "hyperbolic tangent",
}

#: Arrays, whose options are those of `sim.cli.unit_options`.
ARRAYS = {
    "systolic": "systolic matrix unit of any size, dataflow and format",
    "array": "systolic array alone, without accumulators",
    "tensor_unit": "matrix unit with a unified buffer and instructions",
    "tensor_top": "tensor unit whose instructions come from AXI4-Lite registers",
}

#: Every component but the arrays, by its name.
COMPONENTS: dict[str, StandAlone] = {
    component.name: component
    for component in (
        *_UNITS,
        *(
            StandAlone(
                f"fp_{name}",
                f"fp32, combinational: {summary}",
                _made("hw.float.operations.OperationUnit", name=name),
                "fp",
                of_chip=False,
            )
            for name, summary in _OPERATIONS.items()
        ),
        *(
            StandAlone(
                f"fp_{name}",
                f"fp32, pipelined: {summary}",
                _function(name),
                "fp",
                (Parameter("width", limits.FUNCTION_WIDTH, limits.FUNCTION_WIDTH.high),),
                of_chip=False,
            )
            for name, summary in _FUNCTIONS.items()
        ),
    )
}
