"""Linear copies of a TMA unit: descriptors of a range of bytes, made for one command each."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_BOX, ElementFormat, descriptor_layout
from hw.lib.component import Component
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.layouts import MAX_ROW_BYTES

__all__ = [
    "LINEAR_ENTRIES",
    "MAX_LINEAR_BYTES",
    "LinearSplitter",
    "linear_copy_layout",
    "linear_part_layout",
]

#: Bytes of the longest linear copy: a box of the most rows.
MAX_LINEAR_BYTES = MAX_BOX * MAX_ROW_BYTES
#: Copies of a side whose descriptors are kept, of two descriptors each.
_COPIES = 2
#: Descriptors of linear copies, behind those of the cache: of two sides.
LINEAR_ENTRIES = 2 * _COPIES * 2


def linear_copy_layout(address_bits: int) -> data.StructLayout:
    """Layout of a linear copy: its side (0 load, 1 store), address and bytes, multiples of 16."""
    return data.StructLayout(
        {"side": 1, "address": address_bits, "bytes": range(MAX_LINEAR_BYTES + 1)}
    )


def linear_part_layout(descriptors: int) -> data.StructLayout:
    """Layout of a part of a copy: its descriptor in the file, and whether one more follows."""
    return data.StructLayout({"entry": range(descriptors), "continues": 1})


class LinearSplitter(Component):
    """Splitter of linear copies: a box of whole rows of `MAX_ROW_BYTES`, then one of the rest.

    A part takes two cycles. The descriptors of a copy are kept until it is freed.

    Parameters
    ----------
    address_bits : int
        Width of a byte address of memory.
    descriptors : int
        Descriptors in the engine's file, the last `LINEAR_ENTRIES` of them for linear copies.

    Members
    -------
    i_stream : stream of :func:`linear_copy_layout`
    o_parts : stream of :func:`linear_part_layout`
    o_write : stream of :func:`hw.tma.descriptor_file.descriptor_write_layout`
    i_freed : array of two
        The engine has read the descriptors of the oldest copy of a side.
    """

    i_stream: stream.Interface
    o_parts: stream.Interface
    o_write: stream.Interface
    i_freed: Sequence[Signal]

    def __init__(self, *, address_bits: int, descriptors: int) -> None:
        self._first = descriptors - LINEAR_ENTRIES
        super().__init__(
            {
                "i_stream": In(stream.Signature(linear_copy_layout(address_bits))),
                "o_parts": Out(stream.Signature(linear_part_layout(descriptors))),
                "o_write": Out(stream.Signature(descriptor_write_layout(descriptors))),
                "i_freed": In(1).array(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        copy: Any = self.i_stream.payload
        part: Any = self.o_parts.payload
        write: Any = self.o_write.payload
        shift = (MAX_ROW_BYTES - 1).bit_length()
        rows, rest = copy.bytes >> shift, copy.bytes[:shift]
        slots = [Signal(range(_COPIES), name=f"slot{side}") for side in range(2)]
        free = [Signal(range(_COPIES + 1), init=_COPIES, name=f"free{side}") for side in range(2)]
        second = Signal()  # the box of whole rows has left
        written = Signal()
        only_rest = second | (rows == 0)
        slot = Mux(copy.side, slots[1], slots[0])
        has_slot = Mux(copy.side, free[1], free[0]) != 0
        leaves = self.o_parts.valid & self.o_parts.ready
        m.d.comb += [
            part.entry.eq(self._first + 2 * (_COPIES * copy.side + slot) + second),
            part.continues.eq(~only_rest & (rest != 0)),
            self.o_parts.valid.eq(written),
            self.i_stream.ready.eq(leaves & ~part.continues),
            write.index.eq(part.entry),
            self.o_write.valid.eq(self.i_stream.valid & ~written & has_slot),
        ]
        with m.If(leaves):
            m.d.sync += [written.eq(0), second.eq(part.continues)]
        with m.Elif(self.o_write.valid & self.o_write.ready):
            m.d.sync += written.eq(1)
        for side in range(2):
            ends = self.i_stream.ready & (copy.side == side)
            m.d.sync += [
                slots[side].eq(slots[side] + ends),
                free[side].eq(free[side] - ends + self.i_freed[side]),
            ]

        described: Any = Signal(descriptor_layout)
        element = ElementFormat.INT32
        length = rest >> (element.bytes - 1).bit_length()
        whole = MAX_ROW_BYTES // element.bytes
        m.d.comb += [
            described.base.eq(copy.address + Mux(second, rows << shift, 0)),
            described.format.eq(element.value),
            described.rank.eq(Mux(only_rest, 1, 2)),
            described.dims[0].eq(Mux(only_rest, length, whole)),
            described.dims[1].eq(rows),
            described.box[0].eq(Mux(only_rest, length, whole)),
            described.box[1].eq(rows),
            described.strides[0].eq(MAX_ROW_BYTES),
            *(described.element_strides[number].eq(1) for number in range(2)),
            write.words.as_value().eq(described.as_value()),
        ]
        return m
