"""Box storer: the vectors of boxes to store, out of the scratchpad."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import COMMAND_ID_BITS
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.lib.stream import vector_layout, vector_signature
from hw.tma.layouts import TmaLayouts
from hw.tma.standalone.swizzle import exchange_of, reordered, swizzled
from hw.tma.standalone.tickets import ticket_layout

__all__ = ["BoxStorer", "read_layout"]

#: A store or a COMMIT whose vectors have been read, or that is refused.
read_layout = data.StructLayout({"id": COMMAND_ID_BITS, "code": 8, "commits": 1})

#: Vectors read ahead of the engine; a read takes a cycle, and the queue two more.
_AHEAD = 8


class BoxStorer(Component):
    """Box storer: reads boxes from the scratchpad in the order of their swizzle, a vector a cycle.

    Parameters
    ----------
    layouts : TmaLayouts
        Those of the engine.
    vectors : int
        Vectors of a scratchpad.
    scratchpads : int
        Scratchpads of the unit.

    Members
    -------
    i_tickets : stream of :func:`hw.tma.standalone.tickets.ticket_layout`
    o_reads : stream of ``range(vectors)``
    i_data
        The vector read, in the cycle after its address only.
    o_stream
        Vectors of the boxes.
    o_ended : stream of :data:`read_layout`
        One per ticket, when its last vector is read. Must feed a buffer, whose ready ignores valid.
    o_pads
        With several scratchpads: a bit for each, set for the one that is read.
    """

    i_tickets: stream.Interface
    o_reads: stream.Interface
    i_data: Signal
    o_stream: stream.Interface
    o_ended: stream.Interface
    o_pads: Signal

    def __init__(self, layouts: TmaLayouts, *, vectors: int, scratchpads: int = 1) -> None:
        self._layouts = layouts
        self._vectors = vectors
        self._several = scratchpads > 1
        super().__init__(
            {
                "i_tickets": In(stream.Signature(ticket_layout(vectors, scratchpads))),
                "o_reads": Out(stream.Signature(range(vectors))),
                "i_data": In(layouts.width_bits),
                "o_stream": Out(vector_signature(layouts.width_bits)),
                "o_ended": Out(stream.Signature(read_layout)),
                **({"o_pads": Out(scratchpads)} if self._several else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift, within = self._layouts.beat_shift, self._layouts.unit_bits
        ticket: Any = self.i_tickets.payload
        ended: Any = self.o_ended.payload
        ahead = Queue(vector_layout(self._layouts.width_bits), depth=_AHEAD)
        m.submodules.ahead = shared(ahead)
        wiring.connect(m, ahead.o_stream, wiring.flipped(self.o_stream))
        moved = Signal(range(self._vectors))
        place = Signal(range(self._vectors))
        exchange = Signal(3)
        room = Signal(range(_AHEAD + 1), init=_AHEAD)
        alone = Signal()
        last = Signal()
        offered = Signal()
        moves = Signal()
        ends = Signal()
        m.d.comb += [
            alone.eq(
                self.i_tickets.valid & (ticket.commits | (ticket.code != TmaError.NONE.value))
            ),
            place.eq(ticket.vector + moved),
            exchange.eq(exchange_of(place, ticket.swizzle, shift)),
            last.eq(moved + 1 == (ticket.count + (1 << within) - 1) >> within),
            offered.eq(self.i_tickets.valid & ~alone & (room != 0) & (~last | self.o_ended.ready)),
            self.o_reads.valid.eq(offered),
            self.o_reads.payload.eq(swizzled(place, exchange, shift)),
            moves.eq(offered & self.o_reads.ready),
            ends.eq(alone | (moves & last)),
            self.o_ended.valid.eq(ends),
            self.i_tickets.ready.eq(ends & self.o_ended.ready),
            ended.id.eq(ticket.id),
            ended.code.eq(ticket.code),
            ended.commits.eq(ticket.commits),
        ]
        if self._several:
            m.d.comb += self.o_pads.eq(ticket.pads)
        with m.If(moves):
            m.d.sync += moved.eq(Mux(last, 0, moved + 1))

        arriving = Signal()
        ending = Signal()
        exchanged = Signal.like(exchange)
        vector: Any = ahead.i_stream.payload
        m.d.sync += [
            arriving.eq(moves),
            ending.eq(last),
            exchanged.eq(exchange),
            room.eq(room - moves + (self.o_stream.valid & self.o_stream.ready)),
        ]
        m.d.comb += [
            ahead.i_stream.valid.eq(arriving),
            vector.data.eq(reordered(m, self.i_data, exchanged)),
            vector.last.eq(ending),
        ]
        return m
