"""Result FIFO of a matrix unit: rows of sums that arrive skewed, column by column."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError
from hw.emit.shared import Library, shared
from hw.emit.vector_memory import without_contents
from hw.lib.component import Component

__all__ = ["ResultColumn", "ResultFifo", "row_layout", "rows_signature"]

_MOST_ROWS = 1 << 16


class ResultColumn(Component):
    """Result-FIFO memory of one column.

    Parameters
    ----------
    rows : int
        Depth, a power of two.

    Members
    -------
    i_write, i_place, i_sum
        Entry to write; the right neighbour gets write and address one cycle later.
    o_write, o_place
    i_read, i_read_place, o_sum
        Entry to read; its result from the next cycle on, until the next read.
    """

    i_write: Signal
    i_place: Signal
    i_sum: Signal
    o_write: Signal
    o_place: Signal
    i_read: Signal
    i_read_place: Signal
    o_sum: Signal

    def __init__(self, *, rows: int) -> None:
        self._rows = rows
        super().__init__(
            {
                "i_write": In(1),
                "i_place": In(range(rows)),
                "i_sum": In(32),
                "o_write": Out(1),
                "o_place": Out(range(rows)),
                "i_read": In(1),
                "i_read_place": In(range(rows)),
                "o_sum": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank: memory.Memory = memory.Memory(shape=32, depth=self._rows, init=[])
        m.submodules.bank = bank
        write, read = bank.write_port(), bank.read_port(domain="sync")
        m.d.comb += [
            read.addr.eq(self.i_read_place),
            read.en.eq(self.i_read),
            self.o_sum.eq(read.data),
            write.addr.eq(self.i_place),
            write.data.eq(self.i_sum),
            write.en.eq(self.i_write),
        ]
        m.d.sync += [self.o_write.eq(self.i_write), self.o_place.eq(self.i_place)]
        return m

    def rtlil(self, library: Library) -> str:
        """RTLIL of its definition, whose memory needs no initial contents."""
        return without_contents(self, library)


def row_layout(columns: int) -> data.StructLayout:
    """Layout of one row of results: C sums of 32 bits, and whether it ends its packet."""
    return data.StructLayout({"sums": data.ArrayLayout(32, columns), "last": 1})


def rows_signature(columns: int) -> wiring.Signature:
    """Signature of rows of sums without back-pressure, from the producer's point of view.

    An entry is reserved before its row leaves the array, so the array's output never stalls.

    Members
    -------
    room, reserve
        Entries are free for the rows that follow one another without a pause; one entry is
        reserved in this cycle.
    write, last, sums
        Column 0 of a row arrives, its column c after c cycles; it ends its packet.
    """
    sums = data.ArrayLayout(32, columns)
    return wiring.Signature(
        {"room": In(1), "reserve": Out(1), "write": Out(1), "last": Out(1), "sums": Out(sums)}
    )


class ResultFifo(Component):
    """Result FIFO of rows that arrive skewed by one cycle per column and leave aligned.

    Parameters
    ----------
    columns : int
    rows : int
        Depth in rows, a power of two.
    together : int
        Entries reserved at once: rows that follow one another without a pause.

    Members
    -------
    i_rows : ``In(rows_signature(columns))``
    o_rows : stream of `row_layout`
    """

    i_rows: Any
    o_rows: stream.Interface

    def __init__(self, *, columns: int, rows: int, together: int = 1) -> None:
        require_int("Result rows", rows, together, _MOST_ROWS)
        if rows & (rows - 1):
            raise BadInputError(f"Result rows must be a power of two, not {rows}")
        self._columns, self._rows, self._together = columns, rows, together
        super().__init__(
            {
                "i_rows": In(rows_signature(columns)),
                "o_rows": Out(stream.Signature(row_layout(columns))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.i_rows
        # `taken` counts reserved entries: rows in flight, in the FIFO, or not yet read.
        taken = Signal(range(self._rows + 1))
        here = Signal(range(self._rows + 1))
        place = Signal(range(self._rows))
        read_place = Signal(range(self._rows))
        read = Signal()
        offered = Signal()
        m.d.comb += [
            rows.room.eq(taken <= self._rows - self._together),
            read.eq((here != 0) & (~offered | self.o_rows.ready)),
            self.o_rows.valid.eq(offered),
        ]
        m.d.sync += [
            taken.eq(taken + rows.reserve - read),
            place.eq(place + rows.write),
            read_place.eq(read_place + read),
            offered.eq(read | (offered & ~self.o_rows.ready)),
        ]
        write: Value = rows.write
        write_place: Value = place
        sums = []
        for index in range(self._columns):
            column_place = Signal(range(self._rows), name=f"place_{index}")
            column = ResultColumn(rows=self._rows)
            m.submodules[f"column_{index}"] = shared(column)
            m.d.comb += [
                column.i_write.eq(write),
                column_place.eq(write_place),
                column.i_place.eq(column_place),
                column.i_sum.eq(rows.sums[index]),
                column.i_read.eq(read),
                column.i_read_place.eq(read_place),
            ]
            sums.append(column.o_sum)
            written = write
            write, write_place = column.o_write, column.o_place
        # A row is complete with its last column's sum.
        m.d.sync += here.eq(here + written - read)
        m.d.comb += self.o_rows.payload.sums.eq(Cat(*sums))
        marks: memory.Memory = memory.Memory(shape=1, depth=self._rows, init=[])
        m.submodules.marks = marks
        mark_write, mark_read = marks.write_port(), marks.read_port(domain="sync")
        m.d.comb += [
            mark_write.addr.eq(place),
            mark_write.data.eq(rows.last),
            mark_write.en.eq(rows.write),
            mark_read.addr.eq(read_place),
            mark_read.en.eq(read),
            self.o_rows.payload.last.eq(mark_read.data),
        ]
        return m
