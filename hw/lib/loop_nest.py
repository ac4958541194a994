"""Hardware loop nest: a chain of counters with programmable bounds, strides and slopes."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError, shown
from hw.arch.launch import REPEAT_BITS
from hw.arch.loops import chain_layout
from hw.lib.component import Component

__all__ = ["CounterChain"]


class CounterChain(Component):
    """Hardware loop nest: one step per cycle; loop 0 is the outermost.

    Loop i runs ``(base + slope * index[outer]) >> shift`` iterations, rounded toward minus
    infinity; loop 0 has neither slope nor shift. A count of zero or less is an empty loop: it
    costs one cycle without a step, and the next outer loop advances. Flags state index positions,
    so those of an outer iteration whose inner loops are empty are not output. Sums and offsets
    advance by addition alone. The first step comes one cycle after ``i_start``.

    Outside loop 0, the whole nest is iterated, without a cycle between two iterations: indices and
    offset begin anew.

    Parameters
    ----------
    loops : int
        Depth of the nest (at least 1).
    count_bits : int
        Bits of an index; a sum, before its shift, lies below ``2**count_bits``.
    offset_bits : int
        Bits of the offset, which wraps.

    Members
    -------
    config : ``In(chain_layout(...))``
        The program; constant from ``i_start`` on.
    i_last_iteration : ``In(REPEAT_BITS)``
        Iterations of the nest less 1; constant from ``i_start`` on.
    i_start : ``In(1)``
        Restart at the first step, in the next cycle, in any state.
    i_next : ``In(1)``
        Take the step (if ``o_valid``) and advance.
    o_valid : ``Out(1)``
        The outputs show a step; they hold it until ``i_next``.
    o_offset : ``Out(offset_bits)``
    o_indices : ``Out(ArrayLayout(count_bits, loops))``
    o_first, o_end, o_last : ``Out(loops)``
        Bit i: loops i and inward are at index 0; loop i is at its last index; loops i and inward
        are at their last indices.
    o_iteration : ``Out(REPEAT_BITS)``
        Iterations finished before this one.
    o_done : ``Out(1)``
        All iterations have finished, or it has not been started.
    """

    config: data.View[data.StructLayout]
    i_last_iteration: Signal
    i_start: Signal
    i_next: Signal
    o_valid: Signal
    o_offset: Signal
    o_indices: data.View[data.ArrayLayout]
    o_first: Signal
    o_end: Signal
    o_last: Signal
    o_iteration: Signal
    o_done: Signal

    def __init__(self, *, loops: int, count_bits: int, offset_bits: int) -> None:
        for noun, value in (
            ("Chain loops", loops),
            ("Count bits", count_bits),
            ("Offset bits", offset_bits),
        ):
            if not isinstance(value, int) or value < 1:
                raise BadInputError(f"{noun} must be an integer of at least 1, not {shown(value)}")
        self._loops = loops
        self._count_bits = count_bits
        self._offset_bits = offset_bits
        layout = chain_layout(loops=loops, count_bits=count_bits, offset_bits=offset_bits)
        super().__init__(
            {
                "config": In(layout),
                "i_last_iteration": In(REPEAT_BITS),
                "i_start": In(1),
                "i_next": In(1),
                "o_valid": Out(1),
                "o_offset": Out(offset_bits),
                "o_indices": Out(data.ArrayLayout(count_bits, loops)),
                "o_first": Out(loops),
                "o_end": Out(loops),
                "o_last": Out(loops),
                "o_iteration": Out(REPEAT_BITS),
                "o_done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        loops = self._loops
        active = Signal()
        program = [self.config.loops[i] for i in range(loops)]
        sums = [Signal(signed(self._count_bits + 1), name=f"sum_{i}") for i in range(loops)]
        counts = [sums[0], *(sums[i] >> program[i].shift for i in range(1, loops))]
        # Offset at which the current iteration of each loop begins.
        starts = [Signal(self._offset_bits, name=f"start_{i}") for i in range(loops)]
        empty = Signal(loops)
        over = Signal(loops + 1)  # loops i and inward end with this step
        advance = Signal(loops)  # one-hot: the loop that advances
        move = Signal()
        m.d.comb += over[loops].eq(1)
        for i in range(loops):
            m.d.comb += [
                empty[i].eq(counts[i] <= 0),
                self.o_end[i].eq(self.o_indices[i] + 1 == counts[i]),
                self.o_first[i].eq(Cat(self.o_indices[j] for j in range(i, loops)) == 0),
                self.o_last[i].eq(self.o_end[i:].all()),
                over[i].eq(empty[i] | (self.o_end[i] & over[i + 1])),
                advance[i].eq(over[i + 1] & ~over[i]),
            ]
        m.d.comb += [
            self.o_offset.eq(starts[-1]),
            self.o_valid.eq(active & ~empty.any()),
            self.o_done.eq(~active),
            move.eq(active & (self.i_next | empty.any())),
        ]
        # An empty loop hides the loops inside it, so the innermost candidate may be the wrong one:
        # everything inside the advancing loop restarts, and `over` of the outermost empty loop
        # makes all loops between it and the advancing one count as finished.
        chosen = Signal(loops)
        for i in range(loops):
            m.d.comb += chosen[i].eq(advance[i] & ~(advance[:i].any() if i else Const(0)))
        start, before, stride = (
            Signal(self._offset_bits, name=name) for name in ("start", "before", "stride")
        )
        for i in range(loops):
            with m.If(chosen[i]):
                m.d.comb += [before.eq(starts[i]), stride.eq(program[i].stride)]
        m.d.comb += start.eq(before + stride)
        begins = Signal()  # an iteration of the nest
        with m.If(move & over[0]):
            with m.If(self.o_iteration == self.i_last_iteration):
                m.d.sync += active.eq(0)
            with m.Else():
                m.d.comb += begins.eq(1)
                m.d.sync += self.o_iteration.eq(self.o_iteration + 1)
        for i in range(loops):
            restarts = chosen[:i].any() if i else Const(0)
            with m.If(move & (chosen[i] | restarts)):
                m.d.sync += [
                    self.o_indices[i].eq(Mux(restarts, 0, self.o_indices[i] + 1)),
                    starts[i].eq(start),
                ]
            if i:
                outer = program[i].outer
                grows, renews = Signal(name=f"grows_{i}"), Signal(name=f"renews_{i}")
                m.d.comb += [
                    grows.eq(Cat(chosen[j] & (outer == j) for j in range(i)).any()),
                    renews.eq(Cat(chosen[:j].any() & (outer == j) for j in range(1, i)).any()),
                ]
                with m.If(move & (grows | renews)):
                    m.d.sync += sums[i].eq(Mux(grows, sums[i] + program[i].slope, program[i].base))
        with m.If(self.i_start):
            m.d.comb += begins.eq(1)
            m.d.sync += [active.eq(1), self.o_iteration.eq(0)]
        with m.If(begins):
            for i in range(loops):
                m.d.sync += [
                    self.o_indices[i].eq(0),
                    starts[i].eq(0),
                    sums[i].eq(program[i].base),
                ]
        return m
