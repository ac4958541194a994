"""Packing of the lanes' results into vectors, behind which a FIFO has room reserved for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.phase_word import ResultForm
from hw.float.aligned_sum import cast_to_bf16
from hw.float.convert import saturate_int8
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.lib.stream import vector_layout, vector_signature

__all__ = ["ResultPacker"]


class _Byte(NamedTuple):
    """Whether a byte is in the group that comes, and its bits."""

    here: Value
    bits: Value


class ResultPacker(Component):
    """Packer of results, without gaps, into vectors; zeros fill a vector that ends early.

    A group is one result of every lane, in one cycle. A vector is in the FIFO a cycle after its
    last group.

    Parameters
    ----------
    width_bits : int
        Link width W.
    lanes : int
        Lanes t.
    depth : int
        Vectors that may be reserved.

    Members
    -------
    i_reserve, o_room
        A vector is begun upstream; only while there is room.
    i_valid, i_results : ``In(1)``, ``In(ArrayLayout(32, lanes))``
        A group, of the oldest vector that is reserved.
    i_form : ``In(ResultForm)``
        Form of the results; stays while there are results under way.
    i_unsigned : ``In(1)``
        Static: int8 results are 0 to 255, of an int32 that is not negative.
    i_position : ``In(range(4 * C // lanes))``
        Number of the group in its vector.
    i_end, i_last, i_final : ``In(1)``
        The group is the last of its vector, and the vector's marks.
    o_stream : ``Out(vector_signature(width_bits))``
    """

    i_reserve: Signal
    o_room: Signal
    i_valid: Signal
    i_results: data.View[data.ArrayLayout]
    i_form: Signal
    i_unsigned: Signal
    i_position: Signal
    i_end: Signal
    i_last: Signal
    i_final: Signal
    o_stream: stream.Interface

    def __init__(self, *, width_bits: int, lanes: int, depth: int) -> None:
        self._width_bits = width_bits
        self._lanes = lanes
        self._depth = depth
        super().__init__(
            {
                "i_reserve": In(1),
                "o_room": Out(1),
                "i_valid": In(1),
                "i_results": In(data.ArrayLayout(32, lanes)),
                "i_form": In(ResultForm),
                "i_unsigned": In(1),
                "i_position": In(range(width_bits // 8 // lanes)),
                "i_end": In(1),
                "i_last": In(1),
                "i_final": In(1),
                "o_stream": Out(vector_signature(width_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = Queue(vector_layout(self._width_bits), depth=self._depth)
        m.submodules.queue = queue
        wiring.connect(m, queue.o_stream, wiring.flipped(self.o_stream))
        credit = Signal(range(self._depth + 1), init=self._depth)
        taken = self.o_stream.valid & self.o_stream.ready
        m.d.sync += credit.eq(credit - self.i_reserve + taken)
        m.d.comb += self.o_room.eq(credit != 0)

        vector = Signal(self._width_bits, reset_less=True)
        complete = Signal()
        marks = Signal(2, reset_less=True)
        m.d.sync += [
            complete.eq(self.i_valid & self.i_end),
            marks.eq(Cat(self.i_last, self.i_final)),
        ]
        code = Value.cast(self.i_form)
        results: list[Value] = [self.i_results[lane] for lane in range(self._lanes)]
        shorts = [cast_to_bf16(m, each) for each in results]
        bytes_ = [
            Mux(self.i_unsigned, each[:8] | each[8:].any().replicate(8), saturate_int8(each))
            for each in results
        ]
        for number in range(self._width_bits // 8):
            forms = ((number // 4, results, number % 4), (number // 2, shorts, number % 2))
            chosen = self._byte(code, (*forms, (number, bytes_, 0)))
            own = vector[8 * number : 8 * number + 8]
            with m.If(self.i_valid):
                with m.If(chosen.here):
                    m.d.sync += own.eq(chosen.bits)
                with m.Elif(self.i_position == 0):
                    m.d.sync += own.eq(0)
        payload: Any = queue.i_stream.payload
        m.d.comb += [
            queue.i_stream.valid.eq(complete),
            payload.eq(Cat(vector, marks)),
        ]
        return m

    def _byte(self, code: Value, forms: tuple[tuple[int, list[Value], int], ...]) -> _Byte:
        """Byte of the vector as a group has it, of an element by its number in each form."""
        here: list[Value] = []
        found: list[Value] = []
        for element, words, byte in forms:
            group, lane = divmod(element, self._lanes)
            here.append(self.i_position == group)
            found.append(words[lane][8 * byte : 8 * byte + 8])
        return _Byte(*(Mux(code[1], Mux(code[0], c, b), a) for a, b, c in (here, found)))
