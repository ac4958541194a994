"""Cutter of a PCU's result packets: an end of a packet after every so many vectors."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.limits import PACKET_VECTORS
from hw.lib.component import Component
from hw.lib.stream import vector_signature

__all__ = ["PacketCutter"]


class PacketCutter(Component):
    """Cutter of packets: `last` after every ``vectors`` vectors, and where a packet ends anyway.

    ``final`` passes as it is. Latency 0; ``ready`` passes through.

    Parameters
    ----------
    width_bits : int
        Bits of a vector's data.

    Members
    -------
    i_stream, o_stream : ``In``, ``Out(vector_signature(width_bits))``
    vectors : ``In(range(PACKET_VECTORS.high + 1))``
        Vectors of a packet, the last may have fewer; 0: packets stay as they are.
    i_clear : ``In(1)``
        The next vector is the first of a packet.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    vectors: Signal
    i_clear: Signal

    def __init__(self, *, width_bits: int) -> None:
        link = vector_signature(width_bits)
        super().__init__(
            {
                "i_stream": In(link),
                "o_stream": Out(link),
                "vectors": In(range(PACKET_VECTORS.high + 1)),
                "i_clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Vectors of the current packet that have left; the comparison below is one bit wider, so
        # that it never holds for packets that are not cut.
        sent = Signal.like(self.vectors)
        last = self.i_stream.payload.last | (sent + 1 == self.vectors)
        m.d.comb += [
            self.o_stream.valid.eq(self.i_stream.valid),
            self.i_stream.ready.eq(self.o_stream.ready),
            self.o_stream.payload.data.eq(self.i_stream.payload.data),
            self.o_stream.payload.last.eq(last),
            self.o_stream.payload.final.eq(self.i_stream.payload.final),
        ]
        with m.If(self.i_clear):
            m.d.sync += sent.eq(0)
        with m.Elif(self.i_stream.valid & self.o_stream.ready):
            m.d.sync += sent.eq(Mux(last, 0, sent + 1))
        return m
