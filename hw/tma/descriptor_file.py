"""Descriptor file: a small memory, written and read one descriptor at a time."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed, unsigned
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import STORED_WORDS, WORD_BITS, descriptor_layout
from hw.lib.component import Component

__all__ = ["DescriptorFile", "descriptor_write_layout"]


def descriptor_write_layout(descriptors: int) -> data.StructLayout:
    """Layout of one descriptor to write; words ascend with the descriptor's bytes.

    ``stride`` is what an iteration of the program adds to the base.
    """
    words = data.ArrayLayout(unsigned(WORD_BITS), STORED_WORDS)
    return data.StructLayout(
        {"index": range(descriptors), "words": words, "stride": signed(WORD_BITS)}
    )


class DescriptorFile(Component):
    """Memory of descriptors; its write port and its read ports have the width of one.

    Read latency is one cycle; the data hold until the next read. Contents survive a reset; a
    descriptor that was never written is zero, which its reader refuses.

    Parameters
    ----------
    descriptors : int
        Capacity in descriptors.
    readers : int
        Read ports.

    Members
    -------
    i_write : stream of :func:`descriptor_write_layout`, always ready
        A descriptor in use must not change before its command has begun to move vectors.
    i_index, i_read, o_descriptor, o_stride : arrays, one entry per reader
        Index and read enable; the descriptor and the stride of its base from the next cycle on,
        until the next read.
    """

    i_write: stream.Interface
    i_index: Sequence[Signal]
    i_read: Sequence[Signal]
    o_descriptor: Sequence[Any]
    o_stride: Sequence[Signal]

    def __init__(self, *, descriptors: int, readers: int) -> None:
        self._descriptors = descriptors
        self._readers = readers
        super().__init__(
            {
                "i_write": In(stream.Signature(descriptor_write_layout(descriptors))),
                "i_index": In(range(descriptors)).array(readers),
                "i_read": In(1).array(readers),
                "o_descriptor": Out(descriptor_layout).array(readers),
                "o_stride": Out(signed(WORD_BITS)).array(readers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words: Any = memory.Memory(
            shape=unsigned((STORED_WORDS + 1) * WORD_BITS), depth=self._descriptors, init=[]
        )
        m.submodules.memory = words
        write: Any = self.i_write.payload
        writer = words.write_port()
        m.d.comb += [
            self.i_write.ready.eq(1),
            writer.addr.eq(write.index),
            writer.data.eq(Cat(write.words, write.stride)),
            writer.en.eq(self.i_write.valid),
        ]
        for number in range(self._readers):
            reader = words.read_port()
            m.d.comb += [
                reader.addr.eq(self.i_index[number]),
                reader.en.eq(self.i_read[number]),
                self.o_descriptor[number].eq(reader.data[: STORED_WORDS * WORD_BITS]),
                self.o_stride[number].eq(reader.data[STORED_WORDS * WORD_BITS :]),
            ]
        return m
