"""Write-back control of a matrix unit: the flags and the row of the sums that leave an array."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["WriteBack", "leaving_layout"]


def leaving_layout(rows: int, flags: tuple[str, ...]) -> data.StructLayout:
    """Layout of a vector whose sum leaves column 0: it is there; its flags; its row."""
    return data.StructLayout({"valid": 1} | dict.fromkeys(flags, 1) | {"row": range(rows)})


class WriteBack(Component):
    """Write-back control: the flags of a vector, delayed until its sum leaves column 0; its row.

    The row is 0 with ``begins``, else the one after that of the vector before.

    Parameters
    ----------
    flags : tuple of str
        Sideband flags of a vector; ``begins``, that of row 0, among them.
    rows : int
        Depth of a column's accumulator RAM.
    cycles : int
        Cycles from a vector to its sum at column 0.

    Members
    -------
    i_issue, i_flags
        A vector enters the array; its flags.
    o_leaving : ``Out(leaving_layout(rows, flags))``
    """

    i_issue: Signal
    i_flags: Signal
    o_leaving: data.View[data.StructLayout]

    def __init__(self, *, flags: tuple[str, ...], rows: int, cycles: int) -> None:
        self._rows, self._cycles = rows, cycles
        leaving = leaving_layout(rows, flags)
        super().__init__({"i_issue": In(1), "i_flags": In(len(flags)), "o_leaving": Out(leaving)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entered = Cat(self.i_issue, self.i_flags)
        row, before = Signal(range(self._rows)), Signal(range(self._rows))
        left = delayed(m, entered, self._cycles, name="flags", reset=True)
        m.d.comb += [
            self.o_leaving.eq(Cat(left, row)),
            row.eq(Mux(self.o_leaving.begins, 0, before + 1)),
        ]
        with m.If(self.o_leaving.valid):
            m.d.sync += before.eq(row)
        return m
