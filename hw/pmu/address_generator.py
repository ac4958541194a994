"""Address generator of a stream engine: a loop nest over the vectors of a ring of slots."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.launch import REPEAT_BITS
from hw.arch.loops import COUNT_BITS
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level, engine_layout
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.loop_nest import CounterChain

__all__ = ["StreamEngine"]


class StreamEngine(Component):
    """Address generator of a stream engine: one vector of a ring of slots per cycle.

    It neither waits for barriers nor moves data; its consumer does. The first step comes one cycle
    after ``i_start``. An iteration goes on in the ring where the one before it ended.

    Parameters
    ----------
    position_bits : int
        Bits of an element position.
    slots : int
        Most slots of a ring.

    Members
    -------
    config : ``In(engine_layout(...))``
        The program; constant from ``i_start`` on.
    i_last_iteration : ``In(REPEAT_BITS)``
        Iterations of the program less 1; constant from ``i_start`` on.
    i_start : ``In(1)``
    i_next : ``In(1)``
        Take the step and advance.
    o_valid : ``Out(1)``
    o_position : ``Out(position_bits)``
        Element position of lane 0.
    o_slot : ``Out(range(slots))``
    o_lap : ``Out(1)``
        Parity of the number of wraps of the ring.
    o_ends : ``Out(ENGINE_LOOPS)``
        Bit i: loops i and inward are at their last indices.
    o_closes : ``Out(1)``
        The step is the slot's last one, in its last repeat.
    o_last, o_final, o_beyond : ``Out(1)``
        Sideband flags of the vector; the vector is a constant.
    o_done : ``Out(1)``
        Off, not started, or all steps taken.
    """

    config: data.View[data.StructLayout]
    i_last_iteration: Signal
    i_start: Signal
    i_next: Signal
    o_valid: Signal
    o_position: Signal
    o_slot: Signal
    o_lap: Signal
    o_ends: Signal
    o_closes: Signal
    o_last: Signal
    o_final: Signal
    o_beyond: Signal
    o_done: Signal

    def __init__(self, *, position_bits: int, slots: int) -> None:
        self._position_bits = position_bits
        self._slots = slots
        super().__init__(
            {
                "config": In(engine_layout(position_bits=position_bits, slots=slots)),
                "i_last_iteration": In(REPEAT_BITS),
                "i_start": In(1),
                "i_next": In(1),
                "o_valid": Out(1),
                "o_position": Out(position_bits),
                "o_slot": Out(range(slots)),
                "o_lap": Out(1),
                "o_ends": Out(ENGINE_LOOPS),
                "o_closes": Out(1),
                "o_last": Out(1),
                "o_final": Out(1),
                "o_beyond": Out(1),
                "o_done": Out(1),
            }
        )

    def _is_last_slot(self, slot: Value) -> Value:
        return slot + 1 == Value.cast(self.config.slot_count)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chain = CounterChain(
            loops=ENGINE_LOOPS, count_bits=COUNT_BITS, offset_bits=self._position_bits
        )
        m.submodules.chain = shared(chain)
        turn = data.StructLayout(
            {"slot": range(self._slots), "lap": 1, "base": self._position_bits}
        )
        here: Any = Signal(turn)
        window: Any = Signal(turn)  # where the window began, for its repeats
        after: Any = Signal(turn)
        m.d.comb += [
            chain.config.eq(self.config.chain),
            chain.i_last_iteration.eq(self.i_last_iteration),
            chain.i_start.eq(self.i_start & self.config.enable),
            chain.i_next.eq(self.i_next),
            self.o_valid.eq(chain.o_valid),
            self.o_done.eq(chain.o_done),
            self.o_position.eq(here.base + chain.o_offset),
            self.o_slot.eq(here.slot),
            self.o_lap.eq(here.lap),
            self.o_ends.eq(chain.o_last),
            self.o_closes.eq(chain.o_last[Level.ADDRESS] & chain.o_end[Level.REPEATS]),
            self.o_last.eq(self._mark(chain, self.config.last_level)),
            self.o_final.eq(self._mark(chain, self.config.final_level)),
        ]
        index = Signal(COUNT_BITS)
        with m.Switch(self.config.limit_loop):
            for level in range(ENGINE_LOOPS):
                with m.Case(level):
                    m.d.comb += index.eq(chain.o_indices[level])
        m.d.comb += self.o_beyond.eq(self.config.limited & (index >= self.config.limit))

        wraps = self._is_last_slot(here.slot)
        m.d.comb += [
            after.slot.eq(Mux(wraps, 0, here.slot + 1)),
            after.lap.eq(here.lap ^ wraps),
            after.base.eq(Mux(wraps, self.config.base, here.base + self.config.slot_stride)),
        ]
        with m.If(self.i_next & chain.o_valid & chain.o_last[Level.ADDRESS]):
            m.d.sync += here.eq(after)
            with m.If(chain.o_last[Level.REPEATS]):
                m.d.sync += window.eq(after)
            with m.Elif(chain.o_last[Level.SLOTS]):
                m.d.sync += here.eq(window)
        with m.If(self.i_start):
            for start in (here, window):
                m.d.sync += [start.slot.eq(0), start.lap.eq(0), start.base.eq(self.config.base)]
        return m

    def _mark(self, chain: CounterChain, level: Value) -> Value:
        # Beyond the loops: one level that flags every vector, and one that flags none.
        return Cat(chain.o_last, Const(1, 1), Const(0, 1)).bit_select(level, 1)
