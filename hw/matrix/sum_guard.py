"""Accumulate-hazard guard of a matrix unit: a row waits for its partial sum of the tile before."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component

__all__ = ["SumGuard"]


class SumGuard(Component):
    """Accumulate-hazard guard: stalls a row until its old partial sum is in the accumulator.

    Vectors add to successive rows, from row 0 on each time a group of rows begins: a tile, or
    several tiles one after another. Successive groups accumulate into the same rows, so a row may
    enter the array again when fewer vectors are in flight than the group before had rows.

    Parameters
    ----------
    rows : int
        Depth of a column's accumulator RAM.
    cycles : int
        Least distance in cycles of two vectors that add to the same row: one more than from the
        read of the old partial sum to the write of the new one, at least 2.

    Members
    -------
    i_issue, i_begins
        A vector enters the array; the next vector begins a group.
    o_row, o_ready
        Row of the next vector; no hazard: its old partial sum will be stored in time.

    Attributes
    ----------
    in_flight, last_row, line : Signal
        Vectors in flight; the last row of the group before; delay line of issued vectors.
    """

    i_issue: Signal
    i_begins: Signal
    o_row: Signal
    o_ready: Signal

    def __init__(self, *, rows: int, cycles: int) -> None:
        self.in_flight = Signal(range(cycles + 1))
        self.last_row = Signal(range(rows))
        self.line = Signal(cycles - 1)
        super().__init__(
            {"i_issue": In(1), "i_begins": In(1), "o_row": Out(range(rows)), "o_ready": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row, last_row = Signal(self.o_row.shape()), Signal(self.o_row.shape())
        m.d.comb += [
            self.o_row.eq(Mux(self.i_begins, 0, row + 1)),
            self.last_row.eq(Mux(self.i_begins, row, last_row)),
            self.o_ready.eq(self.in_flight <= self.last_row),
        ]
        m.d.sync += [
            self.line.eq(Cat(self.i_issue, self.line)[: len(self.line)]),
            self.in_flight.eq(self.in_flight + self.i_issue - self.line[-1]),
        ]
        with m.If(self.i_issue):
            m.d.sync += [row.eq(self.o_row), last_row.eq(self.last_row)]
        return m
