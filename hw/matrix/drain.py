"""Drain of a full accumulator bank: rows in order, cast and packed into vectors."""

from __future__ import annotations

import functools
import operator

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.float.convert import narrow
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer, vector_layout, vector_signature
from hw.numeric.formats import Format

__all__ = ["BankDrain"]


class BankDrain(Component):
    """Drain of one accumulator bank into a packet of the result stream.

    One row is read per cycle; zero sums leave as +0. A vector holds one row of 32-bit sums or two
    rows rounded to a 16-bit float; an odd last row is followed by +0. The last vector has ``last``
    and ``final``.

    Parameters
    ----------
    columns : int
        Sums per row; the link is 32 bits × columns wide.
    rows : int
        Most rows of a bank.
    rounded : tuple of Format
        16-bit floats to which fp32 sums can be rounded.
    softmax : bool
        Whether it can also lead with maxima, or with the last row.

    Members
    -------
    integer
        Static: sums are int32, not fp32.
    to_X
        Static, for each format X of ``rounded``, one at a time: round fp32 to X and pack two rows
        per vector.
    i_start, i_last_row
        A bank is full, with sums in its rows 0 to ``i_last_row``; held until ``o_done``, the last
        row until ``o_read_rows``.
    o_read_rows
        Rows that have been read, from row 0 on: what they hold is not needed any more.
    o_done
        The last row has been taken: the bank is free from the next cycle on.
    o_row, o_enable, i_sums
        Row to read, and its sums one cycle after each enabled row.
    o_stream : vector stream
    leads_maxima, i_maxima, i_group
        Only with ``softmax``. Static: the maxima of the bank come first, twice, each time as a
        packet of one vector, with ``final`` if its block is the first of a query group.
    leads_last_row
        Only with ``softmax``. Static: the last row comes first, as a packet of its own.
    """

    integer: Signal
    i_start: Signal
    i_last_row: Signal
    o_read_rows: Signal
    o_done: Signal
    o_row: Signal
    o_enable: Signal
    i_sums: data.View[data.ArrayLayout]
    o_stream: stream.Interface
    leads_maxima: Signal
    i_maxima: data.View[data.ArrayLayout]
    i_group: Signal
    leads_last_row: Signal

    def __init__(
        self, *, columns: int, rows: int, rounded: tuple[Format, ...], softmax: bool = False
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._softmax = softmax
        #: Modes by the format to which they round.
        self.modes = {fmt: f"to_{fmt}" for fmt in rounded}
        flags = ("leads_maxima", "i_group", "leads_last_row")
        leading = {"i_maxima": In(data.ArrayLayout(32, columns)), **dict.fromkeys(flags, In(1))}
        super().__init__(
            {
                "integer": In(1),
                **dict.fromkeys(self.modes.values(), In(1)),
                "i_start": In(1),
                "i_last_row": In(range(rows)),
                "o_read_rows": Out(range(rows + 1)),
                "o_done": Out(1),
                "o_row": Out(range(rows)),
                "o_enable": Out(1),
                "i_sums": In(data.ArrayLayout(32, columns)),
                "o_stream": Out(vector_signature(32 * columns)),
            }
            | (leading if softmax else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width_bits = 32 * self._columns
        half_bits = width_bits // 2
        port = ElasticBuffer(vector_layout(width_bits))
        m.submodules.port = port
        wiring.connect(m, port.o_stream, wiring.flipped(self.o_stream))

        # Operands beyond K are +0, and a product of them turns a sum of -0 into +0. Clearing the
        # sign of zeros makes the result independent of how far K was padded.
        sums = []
        for column in range(self._columns):
            total = self.i_sums[column]
            zero = ~total[:31].any() & ~self.integer
            sums.append(Cat(total[:31], total[31] & ~zero))
        halves = Cat(*(self._half(m, total) for total in sums))
        modes = [getattr(self, mode) for mode in self.modes.values()]
        packed = functools.reduce(operator.or_, modes) if modes else Const(0)

        # `requested` rows have been requested; the newest of them is at `i_sums` while `waiting`.
        requested = Signal(range(self._rows + 1))
        waiting = Signal()
        waiting_odd = Signal()
        waiting_last = Signal()
        even_half = Signal(half_bits, reset_less=True)
        completes = ~packed | waiting_odd | waiting_last
        taken = waiting & (~completes | port.i_stream.ready)
        last_row, held = Signal.like(self.i_last_row), Signal.like(self.i_last_row)
        with m.If(requested == 0):
            m.d.sync += held.eq(self.i_last_row)
        more = self.i_start & (requested <= last_row)
        m.d.comb += [
            last_row.eq(Mux(requested == 0, self.i_last_row, held)),
            self.o_read_rows.eq(requested),
            self.o_row.eq(requested),
            self.o_enable.eq(more & (~waiting | taken)),
            self.o_done.eq(taken & waiting_last),
            port.i_stream.valid.eq(waiting & completes),
            port.i_stream.payload.last.eq(waiting_last),
            port.i_stream.payload.final.eq(waiting_last),
        ]
        with m.If(~packed):
            m.d.comb += port.i_stream.payload.data.eq(Cat(*sums))
        with m.Elif(waiting_odd):
            m.d.comb += port.i_stream.payload.data.eq(Cat(even_half, halves))
        with m.Else():
            m.d.comb += port.i_stream.payload.data.eq(halves)
        with m.If(taken):
            m.d.sync += waiting.eq(0)
            with m.If(~completes):
                m.d.sync += even_half.eq(halves)
        with m.If(self.o_enable):
            m.d.sync += [
                waiting.eq(1),
                waiting_odd.eq(requested[0]),
                waiting_last.eq(requested == last_row),
            ]
        m.d.sync += requested.eq(Mux(self.o_done, 0, requested + self.o_enable))
        if self._softmax:
            self._lead(m, port.i_stream, requested)
        return m

    def _half(self, m: Module, total: Value) -> Value:
        """A sum rounded to the chosen format; 0 if there is none to choose."""
        half: Value = Const(0, 16)
        for number, (fmt, mode) in enumerate(self.modes.items()):
            rounded = narrow(m, total, fmt, saturate=False)
            half = Mux(getattr(self, mode), rounded, half) if number else rounded
        return half

    def _lead(self, m: Module, sent: stream.Interface, requested: Signal) -> None:
        """Send the maxima before the rows, or the last row before the others."""
        maxima, last_row_waits = Signal(range(3)), Signal()
        with m.If(self.leads_maxima & self.i_start & (maxima != 2)):
            m.d.comb += [
                self.o_enable.eq(0),
                sent.valid.eq(1),
                sent.payload.data.eq(self.i_maxima.as_value()),
                sent.payload.last.eq(1),
                sent.payload.final.eq(self.i_group),
            ]
            m.d.sync += maxima.eq(maxima + sent.ready)
        with m.If(self.o_done):
            m.d.sync += maxima.eq(0)
        with m.If(self.o_enable):
            m.d.sync += last_row_waits.eq(requested == 0)
        with m.If(self.leads_last_row):
            before = Mux(requested == 0, 0, requested - 1)
            m.d.comb += [
                self.o_read_rows.eq(before),
                self.o_row.eq(Mux(requested == 0, self.i_last_row, before)),
            ]
            with m.If(last_row_waits):
                m.d.comb += sent.payload.last.eq(1)
