"""Loop nest of a command chain: the coordinates of one box after the other."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import MAX_RANK
from hw.arch.registers.tma_registers import CHAIN_LOOPS, CHAIN_NO_DIMENSION
from hw.lib.component import Component

__all__ = ["ChainLoops", "chain_loop_layout"]

_LOOP_BITS = 16

#: Loop 0 is the outermost; an index of it adds ``step`` to the coordinate of its ``dimension``.
chain_loop_layout = data.StructLayout(
    {
        "loop": range(CHAIN_LOOPS),
        "count": _LOOP_BITS,
        "dimension": range(CHAIN_NO_DIMENSION + 1),
        "step": signed(32),
    }
)


class ChainLoops(Component):
    """Loop nest of a chain: one box per cycle; after reset every loop has one index.

    Members
    -------
    i_loop : :data:`chain_loop_layout` with ``valid``
        One loop changes; not after `i_begin` until the last box.
    i_base : coordinates of the first box; constant meanwhile
    i_begin
        Begin with the first box in the next cycle.
    i_next
        To the next box.
    o_point
        Coordinates of the box.
    o_last
        It is the last one.
    o_broken
        A loop has no index, or a dimension that is none, or the one of another loop; loops of one
        index have no dimension.
    """

    i_loop: Any
    i_base: Any
    i_begin: Signal
    i_next: Signal
    o_point: Any
    o_last: Signal
    o_broken: Signal

    def __init__(self) -> None:
        point = data.ArrayLayout(signed(32), MAX_RANK)
        super().__init__(
            {
                "i_loop": In(
                    wiring.Signature({"valid": Out(1), "payload": Out(chain_loop_layout)})
                ),
                "i_base": In(point),
                "i_begin": In(1),
                "i_next": In(1),
                "o_point": Out(point),
                "o_last": Out(1),
                "o_broken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        loops, given = range(CHAIN_LOOPS), self.i_loop.payload
        counts = [Signal(_LOOP_BITS, name=f"count{n}", init=1) for n in loops]
        dimensions = [
            Signal(range(CHAIN_NO_DIMENSION + 1), name=f"dimension{n}", init=CHAIN_NO_DIMENSION)
            for n in loops
        ]
        steps = [Signal(signed(32), name=f"step{n}") for n in loops]
        for number in loops:
            with m.If(self.i_loop.valid & (given.loop == number)):
                m.d.sync += [
                    counts[number].eq(given.count),
                    dimensions[number].eq(given.dimension),
                    steps[number].eq(given.step),
                ]
        moves = [(counts[n] != 1) & (dimensions[n] != CHAIN_NO_DIMENSION) for n in loops]
        broken = [count == 0 for count in counts]
        for n in loops:
            broken.append(moves[n] & (dimensions[n] >= MAX_RANK))
            broken += [moves[n] & moves[k] & (dimensions[n] == dimensions[k]) for k in range(n)]
        m.d.comb += self.o_broken.eq(Cat(broken).any())

        indices = [Signal(_LOOP_BITS, name=f"index{n}") for n in loops]
        over = [index + 1 == count for index, count in zip(indices, counts)]
        # The innermost loop that is not at its end advances; those in it begin anew.
        advances = [Cat(over[n + 1 :]).all() & ~over[n] for n in loops]
        restarts = [Cat(over[n:]).all() for n in loops]
        dimension, step = Signal.like(dimensions[0]), Signal(signed(32))
        m.d.comb += self.o_last.eq(restarts[0])
        for n in loops:
            with m.If(advances[n]):
                m.d.comb += [dimension.eq(dimensions[n]), step.eq(steps[n])]
        moved = Signal(signed(32))
        m.d.comb += moved.eq(Array(self.o_point)[dimension] + step)
        with m.If(self.i_begin):
            m.d.sync += [self.o_point.eq(self.i_base), *(index.eq(0) for index in indices)]
        with m.Elif(self.i_next):
            for n in loops:
                with m.If(restarts[n]):
                    m.d.sync += indices[n].eq(0)
                    for each in range(MAX_RANK):
                        with m.If(moves[n] & (dimensions[n] == each)):
                            m.d.sync += self.o_point[each].eq(self.i_base[each])
                with m.If(advances[n]):
                    m.d.sync += indices[n].eq(indices[n] + 1)
            for each in range(MAX_RANK):
                with m.If(~self.o_last & (dimension == each)):
                    m.d.sync += self.o_point[each].eq(moved)
        return m
