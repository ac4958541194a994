"""Check whether a tensor ends within the address width, a bit of an index per cycle."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_RANK, descriptor_layout
from hw.lib.component import Component

__all__ = ["TensorEnd"]


class TensorEnd(Component):
    """Check whether the last byte of a tensor lies within the address width.

    It is base + bytes of dimension 0 - 1 + the sum of last index × stride of the other dimensions.
    A check takes a cycle, and for each further dimension one per bit of its last index, at least
    one. Fields that break a rule of their own give any answer, in at most 130 cycles.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.

    Members
    -------
    i_start
        Begin a check; not while one is under way.
    i_descriptor
        Stays from ``i_start`` on until the check has ended.
    o_ends
        The last cycle of a check.
    o_busy
        A check is under way.
    o_passes
        From the cycle after ``o_ends`` on: the tensor passes the address width.
    """

    i_start: Signal
    i_descriptor: Any
    o_ends: Signal
    o_busy: Signal
    o_passes: Signal

    def __init__(self, *, address_bits: int) -> None:
        self._address_bits = address_bits
        super().__init__(
            {
                "i_start": In(1),
                "i_descriptor": In(descriptor_layout),
                "o_ends": Out(1),
                "o_busy": Out(1),
                "o_passes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fields, bits = self.i_descriptor, self._address_bits
        total, term = Signal(bits), Signal(bits)
        beyond = Signal()  # bits of the term have been shifted out
        left = Signal(32)  # of the last index, by which the term's first value is multiplied
        dimension, following = Signal(range(MAX_RANK)), Signal(range(MAX_RANK + 1))
        row, added = Signal(36), Signal(bits + 1)
        m.d.comb += [
            row.eq((fields.dims[0] << fields.format[:2]) - 1),
            added.eq(total + Mux(left[0], term, 0)),
            following.eq(dimension + 1),
        ]
        with m.If(self.i_start):
            m.d.sync += [
                self.o_busy.eq(1),
                self.o_passes.eq(0),
                total.eq(fields.base),
                term.eq(row),
                beyond.eq(row[bits:].any()),
                left.eq(1),
                dimension.eq(0),
            ]
        with m.If(self.o_busy):
            m.d.sync += [
                total.eq(added),
                self.o_passes.eq(self.o_passes | added[bits] | (left[0] & beyond)),
                term.eq(term << 1),
                beyond.eq(beyond | term[-1]),
                left.eq(left >> 1),
            ]
            with m.If(left[1:] == 0):
                m.d.sync += dimension.eq(following)
                with m.Switch(following):
                    for number in range(1, MAX_RANK):
                        with m.Case(number):
                            stride = fields.strides[number - 1][:40]
                            m.d.sync += [
                                term.eq(stride),
                                beyond.eq(stride[bits:].any()),
                                left.eq(fields.dims[number] - 1),
                            ]
                last = (following >= fields.rank) | (following == MAX_RANK)
                m.d.comb += self.o_ends.eq(last)
                m.d.sync += self.o_busy.eq(~last)
        return m
