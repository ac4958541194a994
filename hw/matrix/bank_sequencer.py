"""Bank bookkeeping of a matrix unit: which accumulator bank a pass fills, and which is drained."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["BankSequencer"]


class BankSequencer(Component):
    """Bookkeeping of two accumulator banks: one is filled by a pass while the other is drained.

    The tiles of a group use rows of the bank one after another, from row 0 on. Those of the first
    group of a pass set the sums, those of further groups add to them.

    The first group of a pass may enter while its bank is still drained, each row after the drain
    has read it. A vector that adds to sums, or ends the pass, waits until all have been read.

    Parameters
    ----------
    columns : int
        Columns of the array.
    rows : int
        Rows of a bank.

    Members
    -------
    i_first, i_last, i_final, i_row, i_issue
        The next vector is the first or the last of its tile, or the last of its pass; its row; it
        enters.
    i_continues
        Its tile, if it is the first of the tile, continues the group of the tile before.
    o_begins, o_starts, o_adds
        The next vector begins a group; begins a pass; adds to sums of the group before.
    o_bank, o_room, o_top
        The bank of its sums; its row of the bank is free; the last row of its pass's first group.
    i_ends
        The sum of the last vector of a pass is at column 0.
    o_write_bank
        Bank of the sum at column 0.
    o_full, o_full_bank, o_last_row
        A pass is complete in a bank; that bank, and, until `i_read_rows`, its last row.
    i_read_rows, i_done
        So many rows of that bank have been read, from row 0 on; the bank has been drained.
    """

    i_first: Signal
    i_last: Signal
    i_final: Signal
    i_row: Signal
    i_issue: Signal
    i_continues: Signal
    o_begins: Signal
    o_starts: Signal
    o_adds: Signal
    o_bank: Signal
    o_room: Signal
    o_top: Signal
    i_ends: Signal
    o_write_bank: Signal
    o_full: Signal
    o_full_bank: Signal
    o_last_row: Signal
    i_read_rows: Signal
    i_done: Signal

    def __init__(self, *, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        inputs = ("first", "last", "final", "issue", "continues", "ends", "done")
        outputs = ("begins", "starts", "adds", "bank", "room", "write_bank", "full", "full_bank")
        row = range(rows)
        super().__init__(
            {f"i_{name}": In(1) for name in inputs}
            | {f"o_{name}": Out(1) for name in outputs}
            | {"i_row": In(row), "o_top": Out(row), "o_last_row": Out(row)}
            | {"i_read_rows": In(range(rows + 1))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank = self.o_bank
        used = Array(Signal(name=f"used_{index}") for index in range(2))
        tops = Array(Signal(range(self._rows), name=f"top_{index}") for index in range(2))
        starts, adding = Signal(init=1), Signal()
        ends_pass = self.i_last & self.i_final
        # The bank of the pass under way is still drained of the pass before in it.
        follows = Signal()
        is_drained = bank == self.o_full_bank
        is_read = is_drained & (self.i_read_rows > self.i_row) & ~self.o_adds & ~ends_pass
        m.d.comb += [
            self.o_starts.eq(starts),
            self.o_begins.eq(starts | (self.i_first & ~self.i_continues)),
            self.o_adds.eq(~starts & (adding | self.o_begins)),
            self.o_room.eq(~Mux(starts, used[bank], follows) | is_read),
            self.o_top.eq(tops[bank]),
        ]
        with m.If(self.i_issue):
            m.d.sync += [
                starts.eq(ends_pass),
                bank.eq(bank ^ ends_pass),
                adding.eq(self.o_adds),
            ]
            with m.If(starts):
                m.d.sync += [used[bank].eq(1), follows.eq(used[bank])]
            with m.If(~self.o_adds):
                m.d.sync += tops[bank].eq(self.i_row)

        # A bank is full when the last column has written its last sum.
        full = Signal(2)
        write_bank, full_bank = self.o_write_bank, self.o_full_bank
        ends = self.i_ends
        with m.If(ends):
            m.d.sync += write_bank.eq(~write_bank)
        filled = delayed(
            m, Cat(ends & ~write_bank, ends & write_bank), self._columns, name="filled", reset=True
        )
        mine = Mux(full_bank, 2, 1)
        m.d.sync += full.eq((full | filled) & ~Mux(self.i_done, mine, 0))
        m.d.comb += [
            self.o_full.eq((full & mine).any()),
            self.o_last_row.eq(tops[full_bank]),
        ]
        with m.If(self.i_done):
            again = follows | (self.i_issue & starts & is_drained)
            m.d.sync += [full_bank.eq(~full_bank), used[full_bank].eq(again), follows.eq(0)]
        return m
