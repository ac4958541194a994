"""Drain control of an output-stationary array: when the sums of a finished tile leave."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["DrainSequencer"]


class DrainSequencer(Component):
    """Drain control of an output-stationary array: when the sums of a finished tile leave.

    The result-FIFO entry of a row is reserved R + L + 1 cycles before the row leaves the array, so
    nothing can stall it. The L rows of one lane leave back to back. A row of cells shifts its drain
    registers until its own sums and those from above have left. Then the drain stands still for
    the next tile, whose sums arrive, at the earliest, while the last L of the former tile leave.
    So a tile may be completed when the former tile has all its entries reserved.

    Parameters
    ----------
    rows, latency : int
        Of the array.

    Members
    -------
    i_closes, o_free
        The last vector of a tile enters the array; it may enter.
    i_room, o_reserve
        L result-FIFO entries are free; one is reserved.
    o_shifts, o_shift, o_last
        Rows of the array whose drain registers shift at column 0, the highest first; a row of
        results leaves; it is the last of its tile.

    Attributes
    ----------
    left : Signal
        Entries still to reserve.
    """

    i_closes: Signal
    o_free: Signal
    i_room: Signal
    o_reserve: Signal
    o_shifts: Signal
    o_shift: Signal
    o_last: Signal

    def __init__(self, *, rows: int, latency: int) -> None:
        self._rows, self._latency = rows, latency
        self.left = Signal(range(rows * latency + 1))
        super().__init__(
            {f"i_{name}": In(1) for name in ("closes", "room")}
            | {f"o_{name}": Out(1) for name in ("free", "reserve", "shift", "last")}
            | {"o_shifts": Out(rows)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left, reserve, shift = self.left, self.o_reserve, self.o_shift
        # Rows of the current lane that are reserved, and that have left; rows of the array that
        # have nothing more to shift.
        part, left_part = Signal(range(self._latency)), Signal(range(self._latency))
        emptied = Signal(self._rows - 1)
        lane_left = left_part == self._latency - 1
        m.d.comb += [
            reserve.eq((left != 0) & (self.i_room | (part != 0))),
            self.o_free.eq((left == 0) | ((left == 1) & reserve)),
            shift.eq(delayed(m, reserve, self._rows + self._latency + 1, name="line", reset=True)),
            self.o_shifts.eq(Cat(~emptied & shift.replicate(len(emptied)), shift)),
            # Rows empty from the top; the lowest one empties with the tile's last row of results.
            self.o_last.eq(lane_left & (emptied[-1] if len(emptied) else Const(1))),
        ]
        with m.If(reserve):
            m.d.sync += part.eq(Mux(part == self._latency - 1, 0, part + 1))
        with m.If(self.i_closes):
            m.d.sync += left.eq(self._rows * self._latency)
        with m.Elif(reserve):
            m.d.sync += left.eq(left - 1)
        with m.If(shift):
            m.d.sync += left_part.eq(Mux(lane_left, 0, left_part + 1))
            with m.If(lane_left):
                m.d.sync += emptied.eq(Mux(self.o_last, 0, Cat(1, emptied)))
        return m
