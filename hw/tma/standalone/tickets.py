"""Tickets of a stand-alone TMA unit: what is left to do of each command given to an engine."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import TmaError
from hw.arch.limits import BARRIERS
from hw.arch.registers.tma_registers import COMMAND_ID_BITS
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.commands import BOX_UNITS_BITS
from hw.tma.layouts import TmaLayouts

__all__ = ["TICKETS", "TicketQueue", "tag_layout", "ticket_layout"]

#: Tickets waiting for their boxes: enough for boxes of two beats at a latency of 100 cycles.
TICKETS = 128
#: Tags waiting for the engine's report, which follows a few boxes behind the command.
_TAGS = 16


def _members(vectors: int, scratchpads: int) -> dict[str, Any]:
    several = {"pads": scratchpads, "copies": 1} if scratchpads > 1 else {}
    return {
        "id": COMMAND_ID_BITS,
        "code": 8,
        "commits": 1,
        "vector": range(vectors),
        "barrier": range(BARRIERS.high),
        "signals": 1,
        "discards": 1,
        **several,
    }


def tag_layout(vectors: int, descriptors: int, scratchpads: int = 1) -> data.StructLayout:
    """Layout of a tag, made when a command is dispatched.

    ``code`` is that of a refusal without the engine; ``commits`` marks a COMMIT. The engine reports
    on every other command, and ``more`` times more if its box is one of several commands.
    ``vector`` is its place in a scratchpad of so many vectors, unless it ``discards`` the box;
    ``entry`` is that of its descriptor in the cache. A ``linear`` copy has no entry, and so many
    ``units``. With several scratchpads, ``pads`` has a bit for each that the box goes to or comes
    from. One that ``copies`` from a scratchpad has ``units``, too, and no engine.
    """
    more = {"entry": range(descriptors), "more": 2, "linear": 1, "units": BOX_UNITS_BITS}
    return data.StructLayout({**_members(vectors, scratchpads), **more})


def ticket_layout(vectors: int, scratchpads: int = 1) -> data.StructLayout:
    """Layout of a ticket: a tag with the box's swizzle and its count of units."""
    return data.StructLayout(
        {**_members(vectors, scratchpads), "swizzle": 2, "count": BOX_UNITS_BITS}
    )


class TicketQueue(Component):
    """Queue of tickets: joins the tags of commands with the engine's reports, in order.

    Parameters
    ----------
    layouts : TmaLayouts
        Those of the engine.
    vectors : int
        Vectors of the scratchpad.
    descriptors : int
        Entries of the descriptor cache.
    scratchpads : int
        Scratchpads of the unit.

    Members
    -------
    i_tags : stream of :func:`tag_layout`
    i_reports : stream of :attr:`hw.tma.layouts.TmaLayouts.report`
    o_tickets : stream of :func:`ticket_layout`
    o_freed : ``entry`` and ``linear`` with ``valid``
        The engine has read the descriptor of this entry, or those of a linear copy, for a command.
    """

    i_tags: stream.Interface
    i_reports: stream.Interface
    o_tickets: stream.Interface
    o_freed: Any

    def __init__(
        self, layouts: TmaLayouts, *, vectors: int, descriptors: int, scratchpads: int = 1
    ) -> None:
        self._tag = tag_layout(vectors, descriptors, scratchpads)
        self._ticket = ticket_layout(vectors, scratchpads)
        self._several = scratchpads > 1
        self._kept = [name for name in _members(vectors, scratchpads) if name != "code"]
        freed = wiring.Signature(
            {"valid": Out(1), "entry": Out(range(descriptors)), "linear": Out(1)}
        )
        super().__init__(
            {
                "i_tags": In(stream.Signature(self._tag)),
                "i_reports": In(stream.Signature(layouts.report)),
                "o_tickets": Out(stream.Signature(self._ticket)),
                "o_freed": Out(freed),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tags = Queue(self._tag, depth=_TAGS)
        tickets = Queue(self._ticket, depth=TICKETS)
        m.submodules.tags = shared(tags)
        m.submodules.tickets = shared(tickets)
        wiring.connect(m, wiring.flipped(self.i_tags), tags.i_stream)
        wiring.connect(m, tickets.o_stream, wiring.flipped(self.o_tickets))
        tag: Any = tags.o_stream.payload
        report: Any = self.i_reports.payload
        ticket: Any = tickets.i_stream.payload
        alone = Signal()
        joined = Signal()
        early = Signal()
        final = Signal()
        seen = Signal(2)
        m.d.comb += [
            alone.eq(tag.commits | (tag.code != TmaError.NONE.value)),
            final.eq(seen == tag.more),
            joined.eq(tags.o_stream.valid & (alone | (self.i_reports.valid & final))),
            tickets.i_stream.valid.eq(joined),
            tags.o_stream.ready.eq(joined & tickets.i_stream.ready),
            early.eq(tags.o_stream.valid & ~alone & self.i_reports.valid & ~final),
            self.i_reports.ready.eq(early | (tags.o_stream.ready & ~alone)),
            self.o_freed.valid.eq(tags.o_stream.ready & ~alone),
            self.o_freed.entry.eq(tag.entry),
            self.o_freed.linear.eq(tag.linear),
            *(ticket[name].eq(tag[name]) for name in self._kept),
            ticket.code.eq(Mux(alone, tag.code, report.code)),
            ticket.swizzle.eq(report.swizzle),
            ticket.count.eq(Mux(tag.linear, tag.units, report.units)),
        ]
        if self._several:
            with m.If(tag.copies):
                m.d.comb += [alone.eq(1), ticket.swizzle.eq(0), ticket.count.eq(tag.units)]
        # All reports of one command have the same code.
        with m.If(early):
            m.d.sync += seen.eq(seen + 1)
        with m.Elif(tags.o_stream.ready):
            m.d.sync += seen.eq(0)
        return m
