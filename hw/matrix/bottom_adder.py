"""Accumulator adder below one array column (``adder="bottom"``)."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.array.cell_config import CellConfig
from hw.array.mac import add_product
from hw.float.fp32 import as_product
from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["BottomAdder"]


class BottomAdder(Component):
    """Accumulator adder of fp32, or of int32 modulo 2^32, with the latency of the array's cells.

    Parameters
    ----------
    config : CellConfig
        Parameters of the cells above.

    Members
    -------
    i_sum, i_old
        Sum of a tile and, one cycle later, the partial sum it is added to.
    o_sum
        New partial sum, ``latency`` cycles after ``i_old``.
    mode
        Static: 1 for int32, below cells with a mode input.
    """

    i_sum: Signal
    i_old: Signal
    o_sum: Signal
    mode: Signal

    def __init__(self, config: CellConfig) -> None:
        self._config = config
        super().__init__({"i_sum": In(32), "i_old": In(32), "o_sum": Out(32), "mode": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        latency = self._config.latency
        tile = Signal(32, reset_less=True)
        m.d.sync += tile.eq(self.i_sum)
        integers = delayed(m, (tile + self.i_old)[:32], latency - 1, name="integer")
        if any(fmt.is_float for fmt in self._config.formats):
            total = add_product(m, as_product(m, tile), self.i_old, latency=latency)
            if self._config.has_mode:
                total = Mux(self.mode, integers, total)
        else:
            total = integers
        result = Signal(32, reset_less=True)
        m.d.sync += result.eq(total)
        m.d.comb += self.o_sum.eq(result)
        return m
