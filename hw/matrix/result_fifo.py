"""Result FIFO of a matrix unit: rows of sums that arrive skewed, column by column."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.array.unit_parameters import RESULT_ROWS
from hw.emit.shared import shared
from hw.emit.vector_memory import VectorMemory
from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["ResultFifo", "row_layout", "rows_signature"]


def row_layout(columns: int) -> data.StructLayout:
    """Layout of one row of results: C sums of 32 bits, and whether it ends its packet."""
    return data.StructLayout({"sums": data.ArrayLayout(32, columns), "last": 1})


def rows_signature(columns: int) -> wiring.Signature:
    """Signature of rows of sums without back-pressure, from the producer's point of view.

    An entry is reserved before its row leaves the array, so the array's output never stalls.

    Members
    -------
    room, reserve
        As many entries are free as rows follow one another without a pause; one entry is reserved
        in this cycle.
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
        Entries reserved at once, at most ``rows``: rows that follow one another without a pause.

    Members
    -------
    i_rows : ``In(rows_signature(columns))``
    o_rows : stream of `row_layout`
    """

    i_rows: Any
    o_rows: stream.Interface

    def __init__(self, *, columns: int, rows: int, together: int = 1) -> None:
        RESULT_ROWS.require(rows)
        require_int("Result rows reserved at once", together, 0, rows)
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
        write, sums = Cat(rows.write, place), []
        for index in range(self._columns):
            if index:
                write = delayed(m, write, 1, name=f"write_{index}", reset=True)
            column = VectorMemory(width=32, depth=self._rows, granule=32)
            m.submodules[f"column_{index}"] = shared(column)
            m.d.comb += [
                Cat(column.i_write, column.i_write_address).eq(write),
                column.i_data.eq(rows.sums[index]),
                column.i_read.eq(read),
                column.i_read_address.eq(read_place),
            ]
            sums.append(column.o_data)
        # A row is complete with its last column's sum.
        m.d.sync += here.eq(here + write[0] - read)
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
