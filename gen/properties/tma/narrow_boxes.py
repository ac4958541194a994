"""Descriptors with narrow fields, and the boxes and rows that they describe, for proofs."""

from __future__ import annotations

import itertools
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data

__all__ = ["NarrowBoxes"]


class NarrowBoxes:
    """Arithmetic of boxes of bytes with narrow fields, as docs/tma.md states it.

    Parameters
    ----------
    rank : int
        Most dimensions.
    bits : int
        Bits of every size, of strides and base in 16 bytes, and of coordinates less their sign.
    """

    def __init__(self, *, rank: int, bits: int) -> None:
        self.rank = rank
        self.bits = bits
        #: No tensor of these sizes passes the end of memory.
        self.address_bits = 4 + 2 * bits + rank

    @property
    def descriptor(self) -> data.StructLayout:
        """Layout of a descriptor; ``rank`` is one less than that."""
        sizes = data.ArrayLayout(self.bits, self.rank)
        return data.StructLayout(
            {
                "rank": 2,
                "base": self.bits,
                "dims": sizes,
                "box": sizes,
                "strides": sizes,
                "shortfall": self.bits,
            }
        )

    def accepted(self, descriptor: Any) -> Value:
        """Whether the box reader accepts the descriptor, with vectors of two bytes."""
        rules = [
            descriptor.rank < self.rank,
            ~descriptor.box[0][0],
            descriptor.shortfall < descriptor.dims[0],
            descriptor.rank.any() | ~descriptor.shortfall.any(),
        ]
        for number in range(self.rank):
            there = descriptor.rank >= number
            sizes = descriptor.dims[number].any() & descriptor.box[number].any()
            rules.append(~there | sizes)
        return Cat(rules).all()

    @property
    def coordinates(self) -> data.ArrayLayout:
        """Layout of the coordinates of a box."""
        return data.ArrayLayout(signed(self.bits + 1), self.rank)

    def bounds(self, descriptor: Any, coordinates: Any, number: int) -> tuple[Value, Value]:
        """First index of a dimension of the box inside the tensor, and the one after the last."""
        there = descriptor.rank >= number
        before = self._clamped(-coordinates[number], descriptor.box[number])
        behind = descriptor.dims[number] - coordinates[number]
        return Mux(there, before, 0), Mux(there, self._clamped(behind, descriptor.box[number]), 1)

    def _clamped(self, value: Value, box: Value) -> Value:
        return Mux(value < 0, 0, Mux(value > box, box, value[: self.bits]))

    def shorter(self, descriptor: Any, coordinates: Any) -> Value:
        """End of the box's last row inside the tensor, if dimension 1 ends there, or of every."""
        behind = descriptor.dims[0] - descriptor.shortfall - coordinates[0]
        ends = descriptor.dims[1] - coordinates[1] <= descriptor.box[1]
        shorter = self._clamped(behind, descriptor.box[0])
        return Mux(ends, shorter, self.bounds(descriptor, coordinates, 0)[1])

    def address(self, descriptor: Any, coordinates: Any) -> Value:
        """Address of the box's first byte, inside the tensor or not."""
        whole: Value = (descriptor.base << 4) + coordinates[0]
        for number in range(1, self.rank):
            step = coordinates[number] * descriptor.strides[number - 1]
            whole = whole + (Mux(descriptor.rank >= number, step, 0) << 4)
        return whole[: self.address_bits]

    def holds(self, m: Module, descriptor: Any, first: Value, end: Value) -> Value:
        """Whether bytes from ``first`` to before ``end`` lie in one row of the tensor."""
        width = self.address_bits + 1
        rows = []
        for index in itertools.product(range(1 << self.bits), repeat=self.rank - 1):
            start = Signal(width, name=f"start_{'_'.join(map(str, index))}")
            exists = []
            offset: Value = descriptor.base
            for number, place in enumerate(index, 1):
                size = Mux(descriptor.rank >= number, descriptor.dims[number], 1)
                exists.append(place < size)
                offset = offset + place * descriptor.strides[number - 1]
            m.d.comb += start.eq(offset << 4)
            last = (descriptor.rank >= 1) & (index[0] + 1 == descriptor.dims[1])
            row = descriptor.dims[0] - Mux(last, descriptor.shortfall, 0)
            fits = (first >= start) & (end <= start + row)
            rows.append(Cat(*exists, fits).all())
        return Cat(rows).any()
