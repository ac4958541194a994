"""Accumulator RAMs, accumulate-hazard guard and result FIFO of a matrix unit, per column."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError
from hw.emit.shared import Library, shared
from hw.emit.vector_memory import without_contents
from hw.lib.component import Component

__all__ = ["PartialColumn", "ResultColumn", "ResultQueue", "SumGuard", "row_layout"]

_MOST_ROWS = 1 << 16


class SumGuard:
    """Accumulate-hazard guard: stalls a row until its old partial sum is in the accumulator.

    Successive tiles accumulate into the same rows, so a row may enter the array again when fewer
    vectors are in flight than the tile before had rows.

    Parameters
    ----------
    rows : int
        Depth of a column's accumulator RAM.
    cycles : int
        Cycles from a vector to its sum at column 0.

    Attributes
    ----------
    issue, last : Signal
        A vector enters the array; it is the last of its tile.
    there, row : Signal
        No hazard: the old partial sum of the next vector's row will be stored in time; that row.
    in_flight, last_row, line : Signal
        Vectors in flight; the last row of the tile before; delay line of issued vectors.
    """

    def __init__(self, *, rows: int, cycles: int) -> None:
        self.in_flight = Signal(range(cycles + 1))
        self.last_row = Signal(range(rows))
        self.line = Signal(cycles - 1)
        self.issue, self.last, self.there = Signal(), Signal(), Signal()
        self.row = Signal(range(rows))

    def add_to(self, m: Module) -> None:
        """Add the logic to a module."""
        m.d.comb += self.there.eq(self.in_flight <= self.last_row)
        m.d.sync += [
            self.line.eq(Cat(self.issue, self.line)[: len(self.line)]),
            self.in_flight.eq(self.in_flight + self.issue - self.line[-1]),
        ]
        with m.If(self.issue):
            m.d.sync += self.row.eq(Mux(self.last, 0, self.row + 1))
            with m.If(self.last):
                m.d.sync += self.last_row.eq(self.row)


class PartialColumn(Component):
    """Accumulator RAM of one column of the array.

    Its control passes to the right neighbour one cycle later, in step with the array's wavefront.

    Parameters
    ----------
    rows : int
        Depth: partial sums it holds.

    Members
    -------
    i_accumulate, i_row, o_old
        Row to read; its partial sum one cycle later, or 0 unless ``i_accumulate``.
    i_store, i_store_row, i_sum
        Partial sum to write, and its row.
    o_accumulate, o_row, o_store, o_store_row
        Control for the right neighbour, one cycle later.
    """

    i_accumulate: Signal
    i_row: Signal
    o_old: Signal
    i_store: Signal
    i_store_row: Signal
    i_sum: Signal
    o_accumulate: Signal
    o_row: Signal
    o_store: Signal
    o_store_row: Signal

    def __init__(self, *, rows: int) -> None:
        require_int("Accumulator rows", rows, 1, _MOST_ROWS)
        self._rows = rows
        told: dict[str, object] = {
            "accumulate": 1,
            "row": range(rows),
            "store": 1,
            "store_row": range(rows),
        }
        super().__init__(
            {f"i_{name}": In(shape) for name, shape in told.items()}
            | {f"o_{name}": Out(shape) for name, shape in told.items()}
            | {"i_sum": In(32), "o_old": Out(32)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank: memory.Memory = memory.Memory(shape=32, depth=self._rows, init=[])
        m.submodules.bank = bank
        write, read = bank.write_port(), bank.read_port(domain="sync")
        m.d.comb += [
            read.addr.eq(self.i_row),
            read.en.eq(1),
            self.o_old.eq(Mux(self.o_accumulate, read.data, 0)),
            write.addr.eq(self.i_store_row),
            write.data.eq(self.i_sum),
            write.en.eq(self.i_store),
        ]
        m.d.sync += [
            self.o_accumulate.eq(self.i_accumulate),
            self.o_row.eq(self.i_row),
            self.o_store.eq(self.i_store),
            self.o_store_row.eq(self.i_store_row),
        ]
        return m

    def rtlil(self, library: Library) -> str:
        """RTLIL of its definition, whose memory needs no initial contents."""
        return without_contents(self, library)


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


class ResultQueue(Component):
    """Result FIFO of rows that arrive skewed by one cycle per column and leave aligned.

    An entry is reserved before its row leaves the array, so the array's output never stalls.

    Parameters
    ----------
    columns : int
    rows : int
        Depth in rows, a power of two.
    together : int
        Entries reserved at once: rows that follow one another without a pause.

    Members
    -------
    o_room, i_take
        ``together`` entries are free; one entry is reserved in this cycle.
    i_write, i_last, i_sums
        Column 0 of a row arrives, its column c after c cycles; it ends its packet.
    o_write
        Columns that write `i_sums` in this cycle.
    o_rows : stream of `row_layout`
    """

    o_room: Signal
    i_take: Signal
    i_write: Signal
    i_last: Signal
    i_sums: data.View[data.ArrayLayout]
    o_write: Signal
    o_rows: stream.Interface

    def __init__(self, *, columns: int, rows: int, together: int = 1) -> None:
        require_int("Result rows", rows, together, _MOST_ROWS)
        if rows & (rows - 1):
            raise BadInputError(f"Result rows must be a power of two, not {rows}")
        self._columns, self._rows, self._together = columns, rows, together
        super().__init__(
            {
                "o_room": Out(1),
                "i_take": In(1),
                "i_write": In(1),
                "i_last": In(1),
                "i_sums": In(data.ArrayLayout(32, columns)),
                "o_write": Out(columns),
                "o_rows": Out(stream.Signature(row_layout(columns))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # `taken` counts reserved entries: rows in flight, in the FIFO, or not yet read.
        taken = Signal(range(self._rows + 1))
        here = Signal(range(self._rows + 1))
        place = Signal(range(self._rows))
        read_place = Signal(range(self._rows))
        read = Signal()
        offered = Signal()
        m.d.comb += [
            self.o_room.eq(taken <= self._rows - self._together),
            read.eq((here != 0) & (~offered | self.o_rows.ready)),
            self.o_rows.valid.eq(offered),
        ]
        m.d.sync += [
            taken.eq(taken + self.i_take - read),
            place.eq(place + self.i_write),
            read_place.eq(read_place + read),
            offered.eq(read | (offered & ~self.o_rows.ready)),
        ]
        write: Value = self.i_write
        write_place: Value = place
        sums, writes = [], []
        for index in range(self._columns):
            column_place = Signal(range(self._rows), name=f"place_{index}")
            column = ResultColumn(rows=self._rows)
            m.submodules[f"column_{index}"] = shared(column)
            m.d.comb += [
                column.i_write.eq(write),
                column_place.eq(write_place),
                column.i_place.eq(column_place),
                column.i_sum.eq(self.i_sums[index]),
                column.i_read.eq(read),
                column.i_read_place.eq(read_place),
            ]
            writes.append(write)
            sums.append(column.o_sum)
            write, write_place = column.o_write, column.o_place
        # A row is complete with its last column's sum.
        m.d.sync += here.eq(here + writes[-1] - read)
        m.d.comb += [self.o_write.eq(Cat(*writes)), self.o_rows.payload.sums.eq(Cat(*sums))]
        marks: memory.Memory = memory.Memory(shape=1, depth=self._rows, init=[])
        m.submodules.marks = marks
        mark_write, mark_read = marks.write_port(), marks.read_port(domain="sync")
        m.d.comb += [
            mark_write.addr.eq(place),
            mark_write.data.eq(self.i_last),
            mark_write.en.eq(self.i_write),
            mark_read.addr.eq(read_place),
            mark_read.en.eq(read),
            self.o_rows.payload.last.eq(mark_read.data),
        ]
        return m
