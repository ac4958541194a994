"""Index unpacker of an AGCU: vectors of an index stream as single indices."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.agcu import INDEX_BITS
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer, vector_layout, vector_signature

__all__ = ["IndexUnpacker"]


class IndexUnpacker(Component):
    """Index unpacker: the indices of each vector in ascending order, one per cycle.

    Parameters
    ----------
    width_bits : int
        Width of a vector, which holds ``width_bits`` / 32 indices.

    Members
    -------
    i_stream : stream of vectors
        Indices; flags are ignored.
    o_valid, o_index : ``Out(1)``, ``Out(32)``
        There is an index; it stays until it is taken.
    i_take : ``In(1)``
        Take the index; only while ``o_valid``.
    i_drop : ``In(1)``
        Drop the rest of a vector of which an index has been taken.
    """

    i_stream: stream.Interface
    o_valid: Signal
    o_index: Signal
    i_take: Signal
    i_drop: Signal

    def __init__(self, *, width_bits: int) -> None:
        self._width_bits = width_bits
        super().__init__(
            {
                "i_stream": In(vector_signature(width_bits)),
                "o_valid": Out(1),
                "o_index": Out(INDEX_BITS),
                "i_take": In(1),
                "i_drop": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vectors = ElasticBuffer(vector_layout(self._width_bits))
        m.submodules.vectors = shared(vectors)
        wiring.connect(m, wiring.flipped(self.i_stream), vectors.i_stream)
        count = self._width_bits // INDEX_BITS
        element = Signal(range(count))
        payload: Any = vectors.o_stream.payload
        m.d.comb += [
            self.o_valid.eq(vectors.o_stream.valid),
            self.o_index.eq(payload.data.word_select(element, INDEX_BITS)),
            vectors.o_stream.ready.eq(
                (self.i_take & (element == count - 1)) | (self.i_drop & (element != 0))
            ),
        ]
        with m.If(self.i_drop):
            m.d.sync += element.eq(0)
        with m.Elif(self.i_take):
            m.d.sync += element.eq(element + 1)  # a power of two: it wraps
        return m
