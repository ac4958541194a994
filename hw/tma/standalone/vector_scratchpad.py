"""Scratchpad of a stand-alone TMA unit: one write and one read port, shared with the user."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.emit.vector_memory import VectorMemory
from hw.lib.component import Component

__all__ = ["Scratchpad", "scratchpad_write_layout"]


def scratchpad_write_layout(width_bits: int, vectors: int) -> data.StructLayout:
    """Layout of a write: address in vectors, data, and a strobe per byte."""
    return data.StructLayout(
        {"vector": range(vectors), "data": width_bits, "strobe": width_bits // 8}
    )


class Scratchpad(Component):
    """Memory of vectors; at each port the user goes first, and boxes take the cycles left.

    Parameters
    ----------
    width_bits : int
        Width of a vector.
    vectors : int
        Vectors.

    Members
    -------
    i_writes : stream of :func:`scratchpad_write_layout`
        Always ready.
    i_reads : stream of ``range(vectors)``
        Address of a vector; always ready.
    o_data : ``data`` with ``valid``
        The vector read, for the cycle after its address.
    i_box_write : stream of :func:`scratchpad_write_layout`
    i_box_read : stream of ``range(vectors)``
    o_box_data
        The vector read for a box, in the cycle after its address only.
    """

    i_writes: stream.Interface
    i_reads: stream.Interface
    o_data: Any
    i_box_write: stream.Interface
    i_box_read: stream.Interface
    o_box_data: Signal

    def __init__(self, *, width_bits: int, vectors: int) -> None:
        self._width_bits = width_bits
        self._vectors = vectors
        writes = stream.Signature(scratchpad_write_layout(width_bits, vectors))
        reads = stream.Signature(range(vectors))
        answer = wiring.Signature({"valid": Out(1), "data": Out(width_bits)})
        super().__init__(
            {
                "i_writes": In(writes),
                "i_reads": In(reads),
                "o_data": Out(answer),
                "i_box_write": In(writes),
                "i_box_read": In(reads),
                "o_box_data": Out(width_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory = VectorMemory(width=self._width_bits, depth=self._vectors, granule=8)
        m.submodules.memory = shared(memory)
        user, box = self.i_writes, self.i_box_write
        given: Any = user.payload
        boxed: Any = box.payload
        m.d.comb += [
            user.ready.eq(1),
            box.ready.eq(~user.valid),
            memory.i_write_address.eq(Mux(user.valid, given.vector, boxed.vector)),
            memory.i_data.eq(Mux(user.valid, given.data, boxed.data)),
            memory.i_write.eq(Mux(user.valid, given.strobe, Mux(box.valid, boxed.strobe, 0))),
            self.i_reads.ready.eq(1),
            self.i_box_read.ready.eq(~self.i_reads.valid),
            memory.i_read.eq(self.i_reads.valid | self.i_box_read.valid),
            memory.i_read_address.eq(
                Mux(self.i_reads.valid, self.i_reads.payload, self.i_box_read.payload)
            ),
            self.o_data.data.eq(memory.o_data),
            self.o_box_data.eq(memory.o_data),
        ]
        m.d.sync += self.o_data.valid.eq(self.i_reads.valid)
        return m
