"""Element selector: the elements of an index vector that lie in different banks, pass by pass."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.words.pmu_word import INDEX_BYTES
from hw.lib.component import Component

__all__ = ["ElementSelector", "pass_layout"]


def pass_layout(*, width_bits: int, position_bits: int) -> data.StructLayout:
    """Layout of one pass over elements of 4 bytes: what each bank of words, and each lane, does.

    ``enable``: the bank serves a lane; ``address``: where; ``lane``: which one; ``served``: the
    lane is served; ``bank``: by which bank; ``first``: it is the first pass over its vector.
    """
    lanes = width_bits // (8 * INDEX_BYTES)
    depth_bits = position_bits - (width_bits // 8).bit_length() + 1
    return data.StructLayout(
        {
            "enable": lanes,
            "address": data.ArrayLayout(depth_bits, lanes),
            "lane": data.ArrayLayout(range(lanes), lanes),
            "served": lanes,
            "bank": data.ArrayLayout(range(lanes), lanes),
            "first": 1,
        }
    )


class ElementSelector(Component):
    """Element selector of a PMU: each pass serves the first waiting lane of every bank of words.

    A vector takes as many passes as the bank with most of its elements has of them, at least one.
    Combinational from the indices to the pass; one pass per cycle, also across vectors.

    Parameters
    ----------
    width_bits : int
        Bits of a vector.
    position_bits : int
        Bits of an element position, counted in bytes.

    Members
    -------
    i_indices : ``In(width_bits)``
        Vector of 32-bit indices; the same from its first pass to its last.
    i_base : ``In(position_bits - 2)``
        Position of index 0, in elements of 4 bytes; its set bits are clear in every index.
    i_limit : ``In(position_bits + 1)``
        Indices at or above it are served in the first pass, by no bank.
    i_next : ``In(1)``
        The pass is made.
    i_clear : ``In(1)``
        Begin anew.
    o_pass : ``Out(pass_layout(...))``
    o_last : ``Out(1)``
        It is the vector's last pass.
    o_outside : ``Out(1)``
        An index is at or above the limit.
    """

    i_indices: Signal
    i_base: Signal
    i_limit: Signal
    i_next: Signal
    i_clear: Signal
    o_pass: Any
    o_last: Signal
    o_outside: Signal

    def __init__(self, *, width_bits: int, position_bits: int) -> None:
        self._lanes = width_bits // (8 * INDEX_BYTES)
        super().__init__(
            {
                "i_indices": In(width_bits),
                "i_base": In(position_bits - 2),
                "i_limit": In(position_bits + 1),
                "i_next": In(1),
                "i_clear": In(1),
                "o_pass": Out(pass_layout(width_bits=width_bits, position_bits=position_bits)),
                "o_last": Out(1),
                "o_outside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self._lanes
        bits = lanes.bit_length() - 1
        word_bits = len(self.i_base)
        done, waiting, inside = Signal(lanes), Signal(lanes), Signal(lanes)
        first = Signal(init=1)
        m.d.comb += [
            waiting.eq(inside & ~done),
            self.o_pass.first.eq(first),
            self.o_last.eq(waiting == self.o_pass.served),
            self.o_outside.eq(~inside.all()),
        ]
        with m.If(self.i_next):
            m.d.sync += [
                done.eq(Mux(self.o_last, 0, done | self.o_pass.served)),
                first.eq(self.o_last),
            ]
        with m.If(self.i_clear):
            m.d.sync += [done.eq(0), first.eq(1)]
        banks = [self.o_pass.bank[lane] for lane in range(lanes)]
        addresses: list[Value] = []
        for lane, bank in enumerate(banks):
            index = self.i_indices.word_select(lane, 8 * INDEX_BYTES)
            place = index[:word_bits] | self.i_base
            before = [waiting[other] & (banks[other] == bank) for other in range(lane)]
            m.d.comb += [
                inside[lane].eq(index < self.i_limit),
                bank.eq(place[:bits] ^ Cat(place[2 * bits - 1 - bit] for bit in range(bits))),
                self.o_pass.served[lane].eq(waiting[lane] & ~Cat(before).any()),
            ]
            addresses.append(place[bits:])
        for number in range(lanes):
            mine = [self.o_pass.served[lane] & (banks[lane] == number) for lane in range(lanes)]
            m.d.comb += [
                self.o_pass.enable[number].eq(Cat(mine).any()),
                self.o_pass.lane[number].eq(
                    Cat(
                        Cat(mine[lane] for lane in range(lanes) if lane >> bit & 1).any()
                        for bit in range(bits)
                    )
                ),
                self.o_pass.address[number].eq(
                    Cat(addresses).word_select(self.o_pass.lane[number], len(addresses[0]))
                ),
            ]
        return m
