"""Write-back control of a matrix unit: the flags and the row of the sums that leave an array."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["WriteBack"]


class WriteBack(Component):
    """Write-back control: the flags of a vector, delayed until its sums leave column 0; their row.

    Parameters
    ----------
    flags : tuple of str
        Sideband flags of a vector, ``last`` among them.
    rows : int
        Depth of a column's accumulator RAM.
    cycles : int
        Cycles from a vector to its sum at column 0.

    Members
    -------
    i_issue, i_flags
        A vector enters the array; its flags.
    o_vector, o_row
        Flags of the vector whose sum is at column 0, if it is ``valid``; its row in its tile.
    """

    i_issue: Signal
    i_flags: data.View[data.StructLayout]
    o_vector: data.View[data.StructLayout]
    o_row: Signal

    def __init__(self, *, flags: tuple[str, ...], rows: int, cycles: int) -> None:
        self._cycles = cycles
        layout = data.StructLayout(dict.fromkeys(flags, 1))
        vector = data.StructLayout({"valid": 1} | dict.fromkeys(flags, 1))
        super().__init__(
            {
                "i_issue": In(1),
                "i_flags": In(layout),
                "o_vector": Out(vector),
                "o_row": Out(range(rows)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entered = Cat(self.i_issue, self.i_flags)
        leaving = self.o_vector
        m.d.comb += leaving.eq(delayed(m, entered, self._cycles, name="flags", reset=True))
        with m.If(leaving.valid):
            m.d.sync += self.o_row.eq(Mux(leaving.last, 0, self.o_row + 1))
        return m
