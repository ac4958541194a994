"""Copier: the vectors of copies, out of the scratchpad that they come from."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.lib.stream import vector_signature
from hw.tma.layouts import TmaLayouts
from hw.tma.standalone.box_storer import BoxStorer
from hw.tma.standalone.tickets import ticket_layout

__all__ = ["Copier"]

#: Copies that wait while others are read.
_WAITING = 4


class Copier(Component):
    """Copier: reads one vector per cycle, in the order of copies, ahead of the writes.

    Parameters
    ----------
    layouts : TmaLayouts
    vectors, scratchpads : int
        Vectors of each scratchpad, and scratchpads.

    Members
    -------
    i_tickets : stream of :func:`hw.tma.standalone.tickets.ticket_layout`
        Ready ignores valid.
    o_reads, o_pads, i_data, o_stream
        As of :class:`hw.tma.standalone.box_storer.BoxStorer`.
    """

    i_tickets: stream.Interface
    o_reads: stream.Interface
    o_pads: Signal
    i_data: Signal
    o_stream: stream.Interface

    def __init__(self, layouts: TmaLayouts, *, vectors: int, scratchpads: int) -> None:
        self._layouts = layouts
        self._places: dict[str, Any] = {"vectors": vectors, "scratchpads": scratchpads}
        self._ticket = ticket_layout(vectors, scratchpads)
        super().__init__(
            {
                "i_tickets": In(stream.Signature(self._ticket)),
                "o_reads": Out(stream.Signature(range(vectors))),
                "o_pads": Out(scratchpads),
                "i_data": In(layouts.width_bits),
                "o_stream": Out(vector_signature(layouts.width_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        waiting = Queue(self._ticket, depth=_WAITING)
        reader = BoxStorer(self._layouts, **self._places)
        m.submodules.waiting = shared(waiting)
        m.submodules.reader = shared(reader)
        for source, target in (
            (wiring.flipped(self.i_tickets), waiting.i_stream),
            (waiting.o_stream, reader.i_tickets),
            (reader.o_reads, wiring.flipped(self.o_reads)),
            (reader.o_stream, wiring.flipped(self.o_stream)),
        ):
            wiring.connect(m, source, target)
        m.d.comb += [
            self.o_pads.eq(reader.o_pads),
            reader.i_data.eq(self.i_data),
            reader.o_ended.ready.eq(1),
        ]
        return m
