"""Every unit but the bf16 and int8 cells in one native model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable, Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.verilog import convert
from hw.array.cell import Cell
from hw.array.operand import OperandRecoder
from hw.float.operations import OPERATIONS, OperationUnit
from hw.float.special_function_unit import SpecialFunctionUnit
from hw.float.special_functions import UNITS as FUNCTIONS
from hw.lib.delay import delayed
from hw.numeric.formats import Format, bf16, e2m1, e4m3, e5m2, fp16, int4, mxe2m1, mxe4m3, mxe5m2
from tests.native.library import build_library

__all__ = [
    "CELLS",
    "FUNCTION_BITS",
    "FUNCTION_UNITS",
    "FUNCTION_WIDTHS",
    "GROUPS",
    "Bench",
    "FloatCell",
    "Unit",
]

Array = npt.NDArray[Any]

#: Cells of the bench: formats and latency.
CELLS: dict[str, tuple[tuple[Format, ...], int]] = {
    **{f"fp16_{latency}": ((fp16,), latency) for latency in (1, 2, 3)},
    "wide_2": ((bf16, fp16), 2),
    **{f"e4m3_{latency}": ((e4m3,), latency) for latency in (1, 2, 3)},
    "e5m2_2": ((e5m2,), 2),
    **{f"fp8_{latency}": ((e4m3, e5m2), latency) for latency in (1, 2, 3)},
    **{f"e2m1_{latency}": ((e2m1,), latency) for latency in (1, 2, 3)},
    **{f"int4_{latency}": ((int4,), latency) for latency in (1, 2, 3)},
    **{f"mxfp8_{latency}": ((mxe4m3, mxe5m2), latency) for latency in (1, 2, 3)},
    **{f"mxe2m1_{latency}": ((mxe2m1,), latency) for latency in (1, 2, 3)},
}

#: Widths of the functions of the bench.
FUNCTION_WIDTHS = (24, 16, 11, 8)

#: Significand bits of the special function units of the bench.
FUNCTION_BITS = (12, 16, 24)

#: Inputs of one run at most, so that outputs stay small.
_CHUNK = 1 << 18


class FloatCell(wiring.Component):
    """A cell behind its recoders that takes both operands and the sum in one cycle.

    The result is at ``o`` 3 + ``latency`` cycles later. Bits 0 and 1 of ``mode`` are those of the
    recoders of ``a`` and ``w``.
    """

    a: Signal
    w: Signal
    p: Signal
    mode: Signal
    o: Signal

    def __init__(self, formats: tuple[Format, ...], latency: int) -> None:
        self._formats = formats
        self._latency = latency
        super().__init__({"a": In(32), "w": In(32), "p": In(32), "mode": In(2), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.cell = cell = Cell(formats=self._formats, latency=self._latency)
        m.submodules.recode_a = left = OperandRecoder(formats=self._formats)
        m.submodules.recode_w = right = OperandRecoder(formats=self._formats)
        # A weight is loaded a cycle before its activation comes, and the sum is taken two later.
        m.d.comb += [
            left.i_bits.eq(delayed(m, self.a[: len(left.i_bits)], 1, name="a")),
            left.mode.eq(self.mode[0]),
            right.i_bits.eq(self.w[: len(right.i_bits)]),
            right.mode.eq(self.mode[1]),
            cell.i_a.eq(left.o_operand),
            cell.i_w.eq(right.o_operand),
            cell.i_swap.eq(1),
            cell.i_w_load.eq(1),
            cell.i_p.eq(delayed(m, self.p, 3, name="p")),
            self.o.eq(cell.o_p),
        ]
        return m


class Unit(NamedTuple):
    """A component of the bench: how to make it, its inputs, and cycles to its output."""

    make: Callable[[], Any]
    ports: dict[str, str]
    cycles: int
    output: str = "o"


def _cells() -> dict[str, Unit]:
    ports = {name: f"i_{name}" for name in "awp"} | {"mode": "mode"}
    return {
        name: Unit(partial(FloatCell, *parameters), ports, 3 + parameters[1])
        for name, parameters in CELLS.items()
    }


def _operations() -> dict[str, Unit]:
    ports = {"a": "i_a", "b": "i_w", "c": "i_p"}
    return {
        name: Unit(partial(OperationUnit, name), dict(list(ports.items())[:words]), 0)
        for name, (_, words) in OPERATIONS.items()
    }


def _cycles(make: Callable[..., Any], width: int) -> int:
    unit = make(width=width)
    # Amaranth warns of components that nobody elaborates.
    Fragment.get(unit, None)
    cycles: int = unit.cycles
    return cycles


def _functions(widths: tuple[int, ...]) -> dict[str, Unit]:
    return {
        f"{name}_{width}": Unit(partial(make, width=width), {"x": "i_a"}, _cycles(make, width))
        for width in widths
        for name, make in FUNCTIONS.items()
    }


def _function_units() -> dict[str, Unit]:
    ports = {"i_argument": "i_a", "i_operation": "i_w"}
    return {
        f"special_function_unit_{bits}": Unit(
            partial(SpecialFunctionUnit, bits), ports, SpecialFunctionUnit.latency, "o_result"
        )
        for bits in FUNCTION_BITS
    }


#: Units by name, in groups that run apart.
GROUPS: tuple[Callable[[], dict[str, Unit]], ...] = (
    _cells,
    _operations,
    partial(_functions, FUNCTION_WIDTHS[:1]),
    partial(_functions, FUNCTION_WIDTHS[1:]),
)

#: Special function units by name; codes of their operations come with the second input.
FUNCTION_UNITS = (_function_units,)


class Top(Elaboratable):
    """All groups, each behind input registers and a clock of its own.

    One design, because each conversion to Verilog starts a yosys.
    """

    def __init__(self, groups: list[dict[str, Unit]]) -> None:
        self._groups = groups
        self._mode = Signal(2, name="mode")
        self._inputs = {port: Signal(32, name=port) for port in ("i_a", "i_w", "i_p")}
        self._clocks = [Signal(name=f"clk_{number}") for number in range(len(groups))]
        self._outputs = [
            [Signal(32, name=f"o_{number}_{index}") for index in range(len(group))]
            for number, group in enumerate(groups)
        ]

    @property
    def ports(self) -> list[Signal]:
        outputs = [output for group in self._outputs for output in group]
        return [*self._clocks, self._mode, *self._inputs.values(), *outputs]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for number, group in enumerate(self._groups):
            name = f"group_{number}"
            domain = ClockDomain(name, reset_less=True)
            m.domains += domain
            m.d.comb += domain.clk.eq(self._clocks[number])
            wires = {"mode": self._mode}
            for port, value in self._inputs.items():
                wires[port] = Signal(32, name=f"{port}_{number}")
                m.d[name] += wires[port].eq(value)
            for index, (unit_name, unit) in enumerate(group.items()):
                component = unit.make()
                m.submodules[f"unit_{unit_name}"] = DomainRenamer(name)(component)
                m.d.comb += self._outputs[number][index].eq(getattr(component, unit.output))
                for port, wire in unit.ports.items():
                    m.d.comb += getattr(component, port).eq(wires[wire])
        return m


def design(groups: list[dict[str, Unit]]) -> str:
    """Verilog of :class:`Top`."""
    top = Top(groups)
    return convert(top, ports=top.ports)


class Bench:
    """Native model of :func:`design`."""

    def __init__(self, groups: tuple[Callable[[], dict[str, Unit]], ...] = GROUPS) -> None:
        self.groups = [group() for group in groups]
        cases = []
        for number, group in enumerate(self.groups):
            count = len(group)
            takes = "".join(
                f"outputs[cycle * {count} + {i}] = top.o_{number}_{i};" for i in range(count)
            )
            cases.append(f"case {number}: {takes} top.clk_{number} = 1; break;")
        lows = " ".join(f"top.clk_{number} = 0;" for number in range(len(self.groups)))
        harness = Path(__file__).with_name("units.cpp").read_text()
        path, self.cache_hit = build_library(
            design(self.groups),
            "top",
            harness.replace("TAKE_OUTPUTS", "\n".join(cases)).replace("CLOCKS_LOW", lows),
        )
        self._library = ctypes.CDLL(str(path))

    def run(
        self,
        names: list[str],
        a: Array,
        w: Array | None = None,
        p: Array | None = None,
        mode: int = 0,
    ) -> dict[str, Array]:
        """Outputs of units of one group by name, an element for each of the inputs."""
        (number,) = {i for name in names for i, g in enumerate(self.groups) if name in g}
        group = self.groups[number]
        order, slack = list(group), 1 + max(group[name].cycles for name in names)
        found: dict[str, list[Array]] = {name: [] for name in names}
        for start in range(0, len(a), _CHUNK):
            count = min(_CHUNK, len(a) - start)
            inputs = []
            for column in (a, w, p):
                padded = np.zeros(count + slack, np.uint32)
                if column is not None:
                    padded[:count] = column[start : start + count]
                inputs.append(padded)
            outputs = np.zeros((count + slack, len(group)), np.uint32)
            self._library.units_run(
                ctypes.c_int(number),
                ctypes.c_int64(count + slack),
                ctypes.c_uint32(mode),
                *(ctypes.c_void_p(x.ctypes.data) for x in (*inputs, outputs)),
            )
            for name in names:
                first = 1 + group[name].cycles
                found[name].append(outputs[first : first + count, order.index(name)].copy())
        return {name: np.concatenate(parts) for name, parts in found.items()}
