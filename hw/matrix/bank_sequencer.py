"""Bank bookkeeping of a matrix unit: which accumulator bank a pass fills, and which is drained."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["BankSequencer"]


class BankSequencer(Component):
    """Bookkeeping of two accumulator banks: one is filled by a pass while the other is drained.

    Parameters
    ----------
    columns : int
        Columns of the array.
    rows : int
        Rows of a bank.

    Members
    -------
    i_first, i_last, i_final, i_issue
        The next vector is the first or the last of its tile, or the last of its pass; it enters.
    o_first_of_pass, o_bank, o_room
        The next vector's tile is the first of its pass; the bank of its sums; the bank is free.
    i_ends, i_row
        The sum of the last vector of a pass is at column 0; its row.
    o_write_bank
        Bank of the sum at column 0.
    o_full, o_full_bank, o_last_row, i_done
        A pass is complete in a bank; that bank, and its last row. The bank has been drained.
    """

    i_first: Signal
    i_last: Signal
    i_final: Signal
    i_issue: Signal
    o_first_of_pass: Signal
    o_bank: Signal
    o_room: Signal
    i_ends: Signal
    i_row: Signal
    o_write_bank: Signal
    o_full: Signal
    o_full_bank: Signal
    o_last_row: Signal
    i_done: Signal

    def __init__(self, *, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        inputs = ("first", "last", "final", "issue", "ends", "done")
        outputs = ("first_of_pass", "bank", "room", "write_bank", "full", "full_bank")
        row = range(rows)
        super().__init__(
            {f"i_{name}": In(1) for name in inputs}
            | {f"o_{name}": Out(1) for name in outputs}
            | {"i_row": In(row), "o_last_row": Out(row)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank = self.o_bank
        used = Array(Signal(name=f"used_{index}") for index in range(2))
        first_of_pass = Signal(init=1)
        begins = first_of_pass & self.i_first
        m.d.comb += [
            self.o_first_of_pass.eq(first_of_pass),
            self.o_room.eq(~(begins & used[bank])),
        ]
        with m.If(self.i_issue):
            with m.If(self.i_last):
                m.d.sync += [
                    first_of_pass.eq(self.i_final),
                    bank.eq(bank ^ self.i_final),
                ]
            with m.If(begins):
                m.d.sync += used[bank].eq(1)

        # A bank is full when the last column has written its last sum.
        last_rows = Array(Signal(range(self._rows), name=f"last_row_{index}") for index in range(2))
        full = Signal(2)
        write_bank, full_bank = self.o_write_bank, self.o_full_bank
        ends = self.i_ends
        with m.If(ends):
            m.d.sync += [last_rows[write_bank].eq(self.i_row), write_bank.eq(~write_bank)]
        filled = delayed(
            m, Cat(ends & ~write_bank, ends & write_bank), self._columns, name="filled", reset=True
        )
        mine = Mux(full_bank, 2, 1)
        m.d.sync += full.eq((full | filled) & ~Mux(self.i_done, mine, 0))
        m.d.comb += [
            self.o_full.eq((full & mine).any()),
            self.o_last_row.eq(last_rows[full_bank]),
        ]
        with m.If(self.i_done):
            m.d.sync += [full_bank.eq(~full_bank), used[full_bank].eq(0)]
        return m
