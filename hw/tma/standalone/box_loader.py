"""Box loader: the vectors of loaded boxes into the scratchpad."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import TmaError
from hw.arch.limits import BARRIERS
from hw.arch.registers.tma_registers import COMMAND_ID_BITS
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.tma.commands import BOX_UNITS_BITS
from hw.tma.layouts import TmaLayouts
from hw.tma.standalone.swizzle import exchange_of, reordered, swizzled
from hw.tma.standalone.tickets import ticket_layout
from hw.tma.standalone.vector_scratchpad import scratchpad_write_layout

__all__ = ["BoxLoader", "loaded_layout"]


def loaded_layout(scratchpads: int = 1) -> data.StructLayout:
    """Layout of a load that has ended: its command, its barrier, the units in the scratchpad.

    With several scratchpads, ``pads`` has a bit for each.
    """
    return data.StructLayout(
        {
            "id": COMMAND_ID_BITS,
            "code": 8,
            "barrier": range(BARRIERS.high),
            "signals": 1,
            "count": BOX_UNITS_BITS,
            **({"pads": scratchpads} if scratchpads > 1 else {}),
        }
    )


class BoxLoader(Component):
    """Box loader: writes boxes to the scratchpad in the order of their swizzle, a vector per cycle.

    A box that is only prefetched passes at the same rate, and is not written.

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
    i_stream, i_response
        Vectors of the boxes; with the last of a box, the responses that failed.
    o_writes : stream of :func:`hw.tma.standalone.vector_scratchpad.scratchpad_write_layout`
    o_loaded : stream of :func:`loaded_layout`
        Must feed a buffer, whose ready ignores valid.
    i_copied, o_pads
        With several scratchpads: vectors of copies, and a bit for each that a write goes to.
    """

    i_tickets: stream.Interface
    i_stream: stream.Interface
    i_response: Signal
    o_writes: stream.Interface
    o_loaded: stream.Interface
    i_copied: stream.Interface
    o_pads: Signal

    def __init__(self, layouts: TmaLayouts, *, vectors: int, scratchpads: int = 1) -> None:
        self._layouts = layouts
        self._vectors = vectors
        self._several = scratchpads > 1
        writes = scratchpad_write_layout(layouts.width_bits, vectors)
        vector = vector_signature(layouts.width_bits)
        several = {"i_copied": In(vector), "o_pads": Out(scratchpads)} if self._several else {}
        super().__init__(
            {
                "i_tickets": In(stream.Signature(ticket_layout(vectors, scratchpads))),
                "i_stream": In(vector),
                "i_response": In(2),
                "o_writes": Out(stream.Signature(writes)),
                "o_loaded": Out(stream.Signature(loaded_layout(scratchpads))),
                **several,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift = self._layouts.beat_shift
        ticket: Any = self.i_tickets.payload
        source = self._chosen_source(m)
        vector: Any = source.payload
        write: Any = self.o_writes.payload
        loaded: Any = self.o_loaded.payload
        moved = Signal(range(self._vectors))
        place = Signal(range(self._vectors))
        exchange = Signal(3)
        refused = Signal()
        offered = Signal()
        moves = Signal()
        ends = Signal()
        m.d.comb += [
            refused.eq(self.i_tickets.valid & (ticket.code != TmaError.NONE.value)),
            place.eq(ticket.vector + moved),
            exchange.eq(exchange_of(place, ticket.swizzle, shift)),
            write.vector.eq(swizzled(place, exchange, shift)),
            write.data.eq(reordered(m, vector.data, exchange)),
            write.strobe.eq(-1),
            # The last vector of a box leaves only together with its end.
            offered.eq(
                self.i_tickets.valid
                & ~refused
                & source.valid
                & (~vector.last | self.o_loaded.ready)
            ),
            self.o_writes.valid.eq(offered & ~ticket.discards),
            moves.eq(offered & (self.o_writes.ready | ticket.discards)),
            source.ready.eq(moves),
            ends.eq(refused | (moves & vector.last)),
            self.o_loaded.valid.eq(ends),
            self.i_tickets.ready.eq(ends & self.o_loaded.ready),
            loaded.id.eq(ticket.id),
            loaded.barrier.eq(ticket.barrier),
            loaded.signals.eq(ticket.signals),
            loaded.count.eq(Mux(refused, 0, ticket.count)),
            loaded.code.eq(ticket.code),
        ]
        units = ticket.count[: self._layouts.unit_bits]
        if self._layouts.packs:
            # The last vector may be short.
            unit = 1 << self._layouts.unit_shift
            below = [number < units for number in range((1 << len(units)) - 1)]
            within = Cat(each.replicate(unit) for each in [*below, Const(0)])
            with m.If(vector.last & (units != 0)):
                m.d.comb += write.strobe.eq(reordered(m, within, exchange, unit=unit))
        failed = self.i_response.any()
        if self._several:
            failed &= ~ticket.copies
            m.d.comb += loaded.pads.eq(ticket.pads)
        with m.If(~refused & failed):
            code = Mux(self.i_response[1], TmaError.READ_DECERR.value, TmaError.READ_SLVERR.value)
            m.d.comb += loaded.code.eq(code)
        with m.If(moves):
            m.d.sync += moved.eq(Mux(vector.last, 0, moved + 1))
        return m

    def _chosen_source(self, m: Module) -> stream.Interface:
        """Vectors of the ticket at hand: of the engine, or of a copy."""
        if not self._several:
            return self.i_stream
        ticket: Any = self.i_tickets.payload
        chosen = stream.Signature(self.i_stream.payload.shape()).create()
        engine, copied = self.i_stream, self.i_copied
        m.d.comb += [
            chosen.valid.eq(Mux(ticket.copies, copied.valid, engine.valid)),
            chosen.payload.eq(Mux(ticket.copies, copied.payload, engine.payload)),
            engine.ready.eq(chosen.ready & ~ticket.copies),
            copied.ready.eq(chosen.ready & ticket.copies),
            self.o_pads.eq(ticket.pads),
        ]
        return chosen
