"""Ends of stores: completions in order, and the counts of groups."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.standalone.box_storer import read_layout
from hw.tma.standalone.tickets import TICKETS
from hw.tma.standalone.unit_commands import GROUP_BITS, completion_layout

__all__ = ["StoreEnds"]


class StoreEnds(Component):
    """Ends of stores and of groups: each is complete when all before it are.

    Parameters
    ----------
    response_bits : int
        Bits of the response to a box: SLVERR and DECERR of its writes, and maybe of its reads.

    Members
    -------
    i_ended : stream of :data:`hw.tma.standalone.box_storer.read_layout`
    i_stored, i_response
        A box is visible in memory, in the order of stores; responses to it that failed.
    o_completions : stream of :data:`hw.tma.standalone.unit_commands.completion_layout`
    o_groups_read, o_groups_stored
        Groups whose vectors are read; groups that are visible in memory. They wrap.
    """

    i_ended: stream.Interface
    i_stored: Signal
    i_response: Signal
    o_completions: stream.Interface
    o_groups_read: Signal
    o_groups_stored: Signal

    def __init__(self, *, response_bits: int = 2) -> None:
        self._response_bits = response_bits
        super().__init__(
            {
                "i_ended": In(stream.Signature(read_layout)),
                "i_stored": In(1),
                "i_response": In(response_bits),
                "o_completions": Out(stream.Signature(completion_layout)),
                "o_groups_read": Out(GROUP_BITS),
                "o_groups_stored": Out(GROUP_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = Queue(read_layout, depth=TICKETS)
        # A store is in the queue before it is stored, so there is room for every response.
        stored = Queue(self._response_bits, depth=TICKETS + 1)
        m.submodules.queue = shared(queue)
        m.submodules.stored = shared(stored)
        wiring.connect(m, wiring.flipped(self.i_ended), queue.i_stream)
        given: Any = self.i_ended.payload
        ended = queue.o_stream
        end: Any = ended.payload
        completion: Any = self.o_completions.payload
        response: Any = stored.o_stream.payload
        waits = Signal()
        m.d.comb += [
            stored.i_stream.valid.eq(self.i_stored),
            stored.i_stream.payload.eq(self.i_response),
            waits.eq(~end.commits & (end.code == TmaError.NONE.value)),
            self.o_completions.valid.eq(ended.valid & (~waits | stored.o_stream.valid)),
            completion.id.eq(end.id),
            completion.code.eq(end.code),
            ended.ready.eq(self.o_completions.valid & self.o_completions.ready),
            stored.o_stream.ready.eq(ended.ready & waits),
        ]
        with m.If(waits & response.any()):
            m.d.comb += completion.code.eq(
                Mux(response[1], TmaError.WRITE_DECERR.value, TmaError.WRITE_SLVERR.value)
            )
        if self._response_bits > 2:
            reads = response[2:]
            with m.If(waits & reads.any()):
                m.d.comb += completion.code.eq(
                    Mux(reads[1], TmaError.READ_DECERR.value, TmaError.READ_SLVERR.value)
                )
        with m.If(self.i_ended.valid & self.i_ended.ready & given.commits):
            m.d.sync += self.o_groups_read.eq(self.o_groups_read + 1)
        with m.If(ended.ready & end.commits):
            m.d.sync += self.o_groups_stored.eq(self.o_groups_stored + 1)
        return m
