"""Every unit but the bf16 and int8 cells in one native model: float cells, casts, functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from amaranth.back import verilog
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.numeric.formats import Format, bf16, e4m3, e5m2, fp16
from hw.systolic.cell import Cell
from hw.systolic.operand import OperandRecoder
from hw.systolic.skew import delayed
from sim.native.build import build_library

__all__ = ["CELLS", "Bench", "FloatCell", "Unit"]

Array = npt.NDArray[Any]

#: Float cells of the bench: formats and latency.
CELLS: dict[str, tuple[tuple[Format, ...], int]] = {
    **{f"fp16_{latency}": ((fp16,), latency) for latency in (1, 2, 3)},
    **{f"e4m3_{latency}": ((e4m3,), latency) for latency in (1, 2, 3)},
    "e5m2_2": ((e5m2,), 2),
    **{f"fp8_{latency}": ((e4m3, e5m2), latency) for latency in (1, 2, 3)},
    "wide_2": ((bf16, fp16), 2),
}


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

    @property
    def cycles(self) -> int:
        return 3 + self._latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.cell = cell = Cell(formats=self._formats, latency=self._latency)
        m.submodules.recode_a = left = OperandRecoder(formats=self._formats)
        m.submodules.recode_w = right = OperandRecoder(formats=self._formats)
        # A weight is loaded a cycle before its activation comes, and the sum is taken two later.
        m.d.comb += [
            left.i_bits.eq(delayed(m, self.a[:16], 1, name="a")),
            left.mode.eq(self.mode[0]),
            right.i_bits.eq(self.w[:16]),
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
    """A component of the bench: how to make it, its inputs, and cycles to its output ``o``."""

    make: Callable[[], Any]
    inputs: str
    cycles: int


def units() -> Mapping[str, Unit]:
    """Every unit by name."""
    found: dict[str, Unit] = {}
    for name, parameters in CELLS.items():
        found[name] = Unit(lambda p=parameters: FloatCell(*p), "a w p mode", 3 + parameters[1])
    return found


def design(chosen: Mapping[str, Unit]) -> str:
    """Verilog of a top with these units."""
    modules, instances = [], []
    for index, (name, unit) in enumerate(chosen.items()):
        component = unit.make()
        text = verilog.convert(
            component, name=f"unit_{name}", emit_src=False, strip_internal_attrs=True
        )
        modules.append(text)
        ports = {port: f"i_{port}" for port in unit.inputs.split()} | {"o": f"w_{index}"}
        ports["mode"] = "mode"
        wires = ", ".join(
            f".{port}({wire})"
            for port, wire in ports.items()
            if port in unit.inputs.split() + ["o"]
        )
        clock = ".clk(clk), .rst(1'b0), " if unit.cycles else ""
        width = len(component.o)
        instances.append(
            f"  wire [{width - 1}:0] w_{index};\n"
            f"  unit_{name} u_{index} ({clock}{wires});\n"
            f"  assign o_{index} = {{{{{32 - width + 1}{{1'b0}}}}, w_{index}}};\n"
        )
    outputs = "".join(f", output [32:0] o_{i}" for i in range(len(chosen)))
    return "\n".join(
        [
            *modules,
            "module top (input clk, input [1:0] mode, input [31:0] i_a, input [31:0] i_w, "
            f"input [31:0] i_p{outputs});\n{''.join(instances)}endmodule\n",
        ]
    )


class Bench:
    """Native model of :func:`design`."""

    def __init__(self) -> None:
        self.units = units()
        count = len(self.units)
        lines = [f"outputs[cycle * {count} + {i}] = uint32_t(top.o_{i});" for i in range(count)]
        harness = Path(__file__).with_name("units.cpp").read_text()
        path, self.cache_hit = build_library(
            design(self.units), "top", harness.replace("TAKE_OUTPUTS", " ".join(lines))
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
        """Outputs of units by name, an element for each of the inputs."""
        slack = max(self.units[name].cycles for name in names)
        count = len(a)
        inputs = [
            np.concatenate([np.zeros(count) if x is None else x, np.zeros(slack)]).astype(np.uint32)
            for x in (a, w, p)
        ]
        outputs = np.zeros((count + slack, len(self.units)), np.uint32)
        self._library.units_run(
            ctypes.c_int64(count + slack),
            ctypes.c_uint32(mode),
            *(ctypes.c_void_p(x.ctypes.data) for x in (*inputs, outputs)),
        )
        order = list(self.units)
        return {
            name: outputs[self.units[name].cycles :, order.index(name)][:count] for name in names
        }
