"""Loader of rises: the first vector of a weight packet, which goes on beside its first tile."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.lib.stream import vector_signature

__all__ = ["RISE_BITS", "RiseLoader"]

#: Width of a rise: the exponent by which the old sums of a column fall.
RISE_BITS = 8


class RiseLoader(Component):
    """Weights of a values unit: without the first vector of each packet, whose bytes are rises.

    Rise c goes with weight vector c of the packet, so it is in step with a tile of C vectors; the
    rises of all further vectors are 0. Latency 0, one vector per cycle.

    Parameters
    ----------
    width_bits : int
        Bits of a vector.
    columns : int
        Vectors of a tile, and rises of a packet.

    Members
    -------
    i_stream, o_stream : ``In``, ``Out(vector_signature(width_bits))``
    o_rise : ``Out(8)``
        Rise that goes with the vector of ``o_stream``.
    active : ``In(1)``
        Static: packets begin with rises. Else all vectors pass, with the rise 0.
    i_clear : ``In(1)``
        The next vector is the first of a packet.
    """

    i_stream: stream.Interface
    o_stream: stream.Interface
    o_rise: Signal
    active: Signal
    i_clear: Signal

    def __init__(self, *, width_bits: int, columns: int) -> None:
        self._columns = columns
        link = vector_signature(width_bits)
        super().__init__(
            {
                "i_stream": In(link),
                "o_stream": Out(link),
                "o_rise": Out(RISE_BITS),
                "active": In(1),
                "i_clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(init=1)
        rises = Signal(RISE_BITS * self._columns)
        taken = self.active & first
        given, weights = self.i_stream, self.o_stream
        m.d.comb += [
            weights.payload.eq(given.payload),
            weights.valid.eq(given.valid & ~taken),
            given.ready.eq(weights.ready | taken),
            self.o_rise.eq(rises[:RISE_BITS]),
        ]
        with m.If(given.valid & given.ready):
            m.d.sync += [
                first.eq(given.payload.last),
                rises.eq(Mux(taken, given.payload.data[: len(rises)], rises >> RISE_BITS)),
            ]
        with m.If(self.i_clear):
            m.d.sync += [first.eq(1), rises.eq(0)]
        return m
