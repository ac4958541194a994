"""Output port of a read engine: FIFO with credits reserved before the read."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.words.pmu_word import ELEMENT_BYTES
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.lib.stream import vector_layout, vector_signature

__all__ = ["OutputPort"]

# Round trip of a credit: 6 cycles (3 in the banks, 2 in the FIFO, 1 for the count).
_DEPTH = 8


class OutputPort(Component):
    """Output FIFO of 8 vectors with credits: every vector that is read has an entry reserved.

    One vector per cycle with reads of up to 5 cycles of latency; 2 cycles from ``i_valid`` to
    ``o_stream``.

    Parameters
    ----------
    width_bits : int
        Bits of a vector's data.

    Members
    -------
    i_reserve : ``In(1)``
        A read of one vector starts; only while ``o_room``.
    i_valid, i_vector : ``In(1)``, ``In(vector_layout(width_bits))``
        The vector of the oldest read.
    i_replace, i_element, i_constant : ``In(1)``, ``In(2)``, ``In(32)``
        Replace its data by an element in every lane: index of the element's width, and its bits.
    i_clear : ``In(1)``
        Discards vectors and reads.
    o_stream : ``Out(vector_signature(width_bits))``
    o_room : ``Out(1)``
        A read may start.
    o_drained : ``Out(1)``
        Every vector has been taken.
    """

    i_reserve: Signal
    i_valid: Signal
    i_vector: data.View[data.StructLayout]
    i_replace: Signal
    i_element: Signal
    i_constant: Signal
    i_clear: Signal
    o_stream: stream.Interface
    o_room: Signal
    o_drained: Signal

    def __init__(self, *, width_bits: int) -> None:
        self._width_bits = width_bits
        super().__init__(
            {
                "i_reserve": In(1),
                "i_valid": In(1),
                "i_vector": In(vector_layout(width_bits)),
                "i_replace": In(1),
                "i_element": In(2),
                "i_constant": In(32),
                "i_clear": In(1),
                "o_stream": Out(vector_signature(width_bits)),
                "o_room": Out(1),
                "o_drained": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = Queue(vector_layout(self._width_bits), depth=_DEPTH - 1)
        m.submodules.queue = ResetInserter(self.i_clear)(queue)
        wiring.connect(m, queue.o_stream, wiring.flipped(self.o_stream))
        constant = Signal(self._width_bits)
        with m.Switch(self.i_element):
            for element, size in enumerate(ELEMENT_BYTES):
                with m.Case(element):
                    copies = self._width_bits // 8 // size
                    m.d.comb += constant.eq(self.i_constant[: 8 * size].replicate(copies))
        credit = Signal(range(_DEPTH + 1), init=_DEPTH)
        m.d.comb += [
            queue.i_stream.valid.eq(self.i_valid),
            queue.i_stream.payload.eq(self.i_vector),
            queue.i_stream.payload.data.eq(Mux(self.i_replace, constant, self.i_vector.data)),
            self.o_room.eq(credit != 0),
            self.o_drained.eq(credit == _DEPTH),
        ]
        taken = self.o_stream.valid & self.o_stream.ready
        m.d.sync += credit.eq(credit - self.i_reserve + taken)
        with m.If(self.i_clear):
            m.d.sync += credit.eq(_DEPTH)
        return m
