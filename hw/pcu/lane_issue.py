"""Issue of elements to a PCU's lanes: phases, steps of the source, and their places in results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_room import kept_groups
from hw.arch.lanes.phase_word import (
    PHASES,
    AuxiliaryUse,
    ElementForm,
    PhaseSource,
    Reduction,
    ResultForm,
    lane_layout,
    phase_layout,
)
from hw.lib.component import Component
from hw.pcu.element_group import as_many
from hw.pcu.kept_words import KeptWords, keeps_words, reads_kept
from hw.pcu.overlapping_phases import follows_at_once
from hw.pcu.statistics import Statistics

__all__ = ["LaneIssue", "step_layout"]

_RUNNING = (Reduction.SUM, Reduction.MAXIMUM, Reduction.MINIMUM)


def step_layout(*, width_bits: int, lanes: int) -> data.StructLayout:
    """Layout of a step: what accompanies one group of elements through the lanes.

    ``group`` is its number in the vector of the source, ``position`` in the vector of results,
    which ``end`` completes with the marks ``last`` and ``final``. ``restart`` is the mark `final`
    of the source's vector, with all of its groups. ``kept`` is the group's number in its strip.
    """
    groups = range(width_bits // 8 // lanes)
    strip = range(kept_groups(width_bits=width_bits, lanes=lanes))
    return data.StructLayout(
        {"group": groups, "position": groups, "kept": strip}
        | dict.fromkeys(("first", "end", "last", "final", "restart"), 1)
    )


class _Ends(NamedTuple):
    """Whether the group that is issued is the last of its vector, of its packet, of its phase."""

    vector: Signal
    packet: Signal
    phase: Signal


class LaneIssue(Component):
    """Issue stage of the lanes: one group of elements per cycle, while nothing can stall them.

    A group is issued if its vectors are there and the FIFO of results has room for the vector that
    it begins. The vectors are taken with their last group. A phase begins when all results of the
    one before it have left the lanes, or at once if it may (`LanePhase.follows`); with a single
    phase packets follow without a pause. Groups of a running sum or extreme are issued
    `Statistics.step_cycles` apart.

    A phase that keeps words ends with a strip of its packet, and so do those that continue it, by
    the same groups and without vectors of the source. Behind the last of them the first one takes
    the next strip of the packet. A phase that continues another one follows at once only behind a
    strip of as many groups as a kept word takes until it can be read.

    Parameters
    ----------
    width_bits : int
        Link width W.
    lanes : int
        Lanes t.
    latency : int
        Cycles from a step to its results.
    functions : tuple of LaneFunction
        Function units of the lanes; the phases' word depends on their number.

    Members
    -------
    i_program : ``In(lane_layout(len(functions)))``
        Program; changes only in reset.
    i_valid, i_last, i_final : ``In(1)``
        There is a vector of the source, and its marks.
    i_auxiliary : ``In(1)``
        There is a vector of the auxiliary stream.
    i_room : ``In(1)``
        Room for another vector of results.
    o_phase : ``Out(phase_layout(len(functions)))``
        The phase whose elements are issued.
    o_phases, o_number : ``Out(ArrayLayout(phase_layout(len(functions)), 2))``, ``Out(1)``
        Two phases, and the number of the one whose elements are issued. Each changes only while no
        element of it is in the lanes.
    o_valid, o_step : ``Out(1)``, ``Out(step_layout(…))``
        A group is issued.
    o_row : ``Out(16)``
        Number of the source's vector in its packet.
    o_element : ``Out(range(W / 8))``
        Element of the auxiliary vector, or the first of as many as there are lanes.
    o_latched : ``Out(1)``
        The auxiliary vector of the group is the one that was latched, not the one in front.
    o_take, o_take_auxiliary, o_reserve : ``Out(1)``
        The vectors are taken; a vector of results begins.
    o_pause, o_wait_room, o_idle : ``Out(1)``
        No group is issued: results of groups before must come first; there is no room for results;
        or a program begins anew, and its first vector is not there.
    """

    i_program: data.View[data.StructLayout]
    i_valid: Signal
    i_last: Signal
    i_final: Signal
    i_auxiliary: Signal
    i_room: Signal
    o_phase: data.View[data.StructLayout]
    o_phases: data.View[data.ArrayLayout]
    o_number: Signal
    o_valid: Signal
    o_step: data.View[data.StructLayout]
    o_row: Signal
    o_element: Signal
    o_latched: Signal
    o_take: Signal
    o_take_auxiliary: Signal
    o_reserve: Signal
    o_pause: Signal
    o_wait_room: Signal
    o_idle: Signal

    def __init__(
        self,
        *,
        width_bits: int,
        lanes: int,
        latency: int,
        functions: tuple[LaneFunction, ...] = (),
    ) -> None:
        self._phase = phase_layout(len(functions))
        self._words = width_bits // 32
        self._lanes = lanes
        self._latency = latency
        # Until results are in the statistics.
        self._cycles = latency + Statistics.step_cycles
        # From a group's issue until its kept words can be read.
        self._kept_cycles = latency + KeptWords.latency
        super().__init__(
            {
                "i_program": In(lane_layout(len(functions))),
                "i_valid": In(1),
                "i_last": In(1),
                "i_final": In(1),
                "i_auxiliary": In(1),
                "i_room": In(1),
                "o_phase": Out(self._phase),
                "o_phases": Out(data.ArrayLayout(self._phase, 2)),
                "o_number": Out(1),
                "o_valid": Out(1),
                "o_step": Out(step_layout(width_bits=width_bits, lanes=lanes)),
                "o_row": Out(16),
                "o_element": Out(range(width_bits // 8)),
                "o_latched": Out(1),
                "o_take": Out(1),
                "o_take_auxiliary": Out(1),
                "o_reserve": Out(1),
                "o_pause": Out(1),
                "o_wait_room": Out(1),
                "o_idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase: Any = self.o_phase
        step: Any = self.o_step
        running = Signal()
        pause = Signal(range(Statistics.step_cycles))
        uses = (Value.cast(phase.auxiliary) != AuxiliaryUse.NONE.value) & ~self.o_latched
        sends = Value.cast(phase.result) != ResultForm.NONE.value
        begins = sends & ~step.position.any()
        from_statistics = Value.cast(phase.source) == PhaseSource.STATISTICS.value
        keeps, continues = Signal(), Signal()
        given = from_statistics | continues
        ready, room = Signal(), Signal()
        m.d.comb += [
            keeps.eq(keeps_words(phase)),
            continues.eq(reads_kept(phase)),
            self.o_pause.eq(~running | (pause != 0)),
            ready.eq(~self.o_pause & (self.i_valid | given) & (self.i_auxiliary | ~uses)),
            room.eq(self.i_room | ~begins),
            self.o_valid.eq(ready & room),
            self.o_wait_room.eq(ready & ~room),
            self.o_reserve.eq(self.o_valid & begins),
        ]
        ends = _Ends(
            Signal(name="last_group"), Signal(name="packet_ends"), Signal(name="phase_ends")
        )
        size = as_many(Value.cast(phase.form), self.i_program.lower)
        size = Mux(from_statistics, ElementForm.BF16.value, size)
        strip_first = self._count_source(m, size, keeps, ends)
        over = self._count_strip(m, keeps, continues, ends)
        self._count_results(m, sends, ends)
        self._count_auxiliary(m, uses, strip_first, ends)
        self._advance(m, running, ends.phase, continues & ~keeps & ~over)
        m.d.comb += self.o_take.eq(ends.vector & ~given)
        with m.If(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        reduction = Value.cast(phase.reduction)
        with m.If(ends.vector & Cat(reduction == each.value for each in _RUNNING).any()):
            m.d.sync += pause.eq(self._by_form(size, self._idle))
        return m

    def _groups(self, per_word: int) -> int:
        """Groups of a vector with so many elements a word."""
        return self._words * per_word // self._lanes

    def _idle(self, per_word: int) -> int:
        """Cycles after a vector in which its groups must not change again."""
        return max(0, Statistics.step_cycles - self._groups(per_word))

    def _by_form(self, code: Value, of: Callable[[int], int]) -> Value:
        """Constant by the form of elements, a function of their number in a word."""
        return Mux(code[1], of(4), Mux(code[0], of(2), of(1)))

    def _count_source(self, m: Module, size: Value, keeps: Signal, ends: _Ends) -> Signal:
        """Groups of a vector, vectors of a packet; whether the strip is the packet's first one."""
        step: Any = self.o_step
        group = Signal.like(step.group)
        first, strip_first = Signal(init=1), Signal(init=1)
        row, strip_row = Signal(16), Signal(16)
        is_last = group == self._by_form(size, lambda per_word: self._groups(per_word) - 1)
        m.d.comb += [
            step.group.eq(group),
            step.first.eq(first),
            self.o_row.eq(row),
            ends.vector.eq(self.o_valid & is_last),
        ]
        with m.If(self.o_valid):
            m.d.sync += group.eq(Mux(is_last, 0, group + 1))
        ahead = Mux(ends.packet, 0, row + 1)[: len(row)]
        with m.If(ends.vector):
            m.d.sync += [first.eq(ends.packet), row.eq(ahead)]
        with m.If(ends.phase):
            # The next phase passes over the same vectors.
            with m.If(keeps):
                m.d.sync += [first.eq(strip_first), row.eq(strip_row)]
            with m.Else():
                m.d.sync += [strip_first.eq(ends.packet), strip_row.eq(ahead)]
        return strip_first

    def _count_strip(self, m: Module, keeps: Signal, continues: Signal, ends: _Ends) -> Signal:
        """Groups of a strip, ends of phases and of packets; whether the strip has ended its packet.

        What the first phase of a strip has found is that of the phases that continue it.
        """
        phase: Any = self.o_phase
        step: Any = self.o_step
        from_statistics = Value.cast(phase.source) == PhaseSource.STATISTICS.value
        kept, last_kept = Signal.like(step.kept), Signal.like(step.kept)
        over, final = Signal(), Signal()
        is_end = Mux(continues, over, self.i_last | from_statistics)
        is_final = Mux(continues, final, self.i_final)
        is_last = Mux(continues, kept == last_kept, is_end | (keeps & kept.all()))
        m.d.comb += [
            step.kept.eq(kept),
            ends.phase.eq(ends.vector & is_last),
            ends.packet.eq(ends.phase & is_end),
            step.last.eq(ends.packet),
            step.final.eq(ends.packet & is_final & ~from_statistics),
            step.restart.eq(is_final),
        ]
        with m.If(self.o_valid):
            m.d.sync += kept.eq(Mux(ends.phase, 0, kept + 1))
        with m.If(ends.phase & ~continues):
            m.d.sync += [last_kept.eq(kept), over.eq(is_end), final.eq(is_final)]
        return over

    def _count_results(self, m: Module, sends: Value, ends: _Ends) -> None:
        """Groups of a vector of results."""
        phase: Any = self.o_phase
        step: Any = self.o_step
        position = Signal.like(step.position)
        form = Value.cast(phase.result)
        words, shorts, bytes_ = (self._groups(each) - 1 for each in (1, 2, 4))
        full = position == Mux(form[1], Mux(form[0], bytes_, shorts), words)
        m.d.comb += [step.position.eq(position), step.end.eq(full | ends.packet)]
        with m.If(self.o_valid & sends):
            m.d.sync += position.eq(Mux(step.end, 0, position + 1))

    def _count_auxiliary(self, m: Module, uses: Value, strip_first: Value, ends: _Ends) -> None:
        """Elements of a vector of the auxiliary stream, which the phase ``uses``."""
        phase: Any = self.o_phase
        use = Value.cast(phase.auxiliary)
        element = Signal.like(self.o_element)
        amount = Signal(range(max(2, self._lanes) + 1))
        with m.Switch(use):
            with m.Case(AuxiliaryUse.VECTOR.value):
                m.d.comb += amount.eq(Mux(self.o_valid, self._lanes, 0))
            with m.Case(AuxiliaryUse.SPREAD.value):
                m.d.comb += amount.eq(Mux(ends.vector, 1, 0))
            with m.Case(AuxiliaryUse.SPREAD_PAIR.value):
                m.d.comb += amount.eq(Mux(ends.vector, 2, 0))
        following = element + amount
        lower = self.i_program.lower & (use == AuxiliaryUse.VECTOR.value)
        form = as_many(Value.cast(phase.auxiliary_form), lower)
        size = self._by_form(form, lambda per_word: self._words * per_word)
        latches = use == AuxiliaryUse.LATCHED.value
        held = latches | (use == AuxiliaryUse.HELD.value)
        # A vector is latched at the end of the first strip; the later ones take none.
        complete = Mux(latches, ends.phase, ends.packet | (following == size))
        step: Any = self.o_step
        m.d.comb += [
            self.o_latched.eq(latches & ~strip_first),
            self.o_take_auxiliary.eq(uses & complete),
            self.o_element.eq(Mux(held, step.group * self._lanes, element)),
        ]
        # Phases beside the one that uses the stream leave its element alone.
        with m.If(uses):
            m.d.sync += element.eq(Mux(complete, 0, following))

    def _advance(self, m: Module, running: Signal, phase_ends: Signal, returns: Value) -> None:
        """Phase after phase: when the lanes are empty, or at once if that is right.

        A phase that ``returns`` is the last one of a strip that does not end its packet.
        """
        program: Any = self.i_program
        phases: Any = self.o_phases
        step: Any = self.o_step
        number = self.o_number
        # Numbers of the phase that is issued, of the one behind it, and of its strip's first one.
        own, behind, first = (
            Signal(range(PHASES), name=each) for each in ("own", "behind", "first")
        )
        coming = Signal(range(PHASES))
        m.d.comb += coming.eq(Mux(returns, first, behind))
        with m.If(~reads_kept(self.o_phase)):
            m.d.sync += first.eq(own)
        wait = Signal(range(self._cycles))
        # The other phase is the one that comes, once elements of the one before have left.
        leaving = Signal(range(self._latency))
        ready, loads = Signal(), Signal()
        starts = (own == 0) & step.first & ~step.group.any()
        m.d.comb += [
            self.o_phase.eq(Mux(number, phases[1], phases[0])),
            self.o_idle.eq(running & starts & ~self.i_valid),
        ]
        other: Any = data.View(self._phase, Mux(number, phases[0], phases[1]))
        # The group that comes next makes the strip so long that each kept word can be read when its
        # group is issued again, at once behind the others.
        is_long = Signal()
        with m.If(self.o_valid & ~phase_ends & (step.kept == self._kept_cycles - 2)):
            m.d.sync += is_long.eq(1)
        follows = (
            ready & (is_long | ~keeps_words(self.o_phase)) & follows_at_once(self.o_phase, other)
        )
        for each in range(2):
            is_own = number == each
            with m.If(Mux(is_own, loads, ~loads & (leaving == 0))):
                m.d.sync += Value.cast(phases[each]).eq(Value.cast(program.phases[coming]))
        with m.If(leaving != 0):
            m.d.sync += leaving.eq(leaving - 1)
        with m.Else():
            m.d.sync += ready.eq(1)
        begins, changes = Signal(), Signal()
        with m.FSM():
            with m.State("LOAD"):
                m.d.comb += [loads.eq(1), begins.eq(program.count != 0)]
                with m.If(begins):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += running.eq(1)
                with m.If(phase_ends & (program.count != 1)):
                    m.d.comb += changes.eq(follows)
                    # The next state but one loads the phase, and a cycle later it runs.
                    m.d.sync += wait.eq(self._cycles - 3)
                    with m.If(~follows):
                        m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.comb += changes.eq(follows)
                m.d.sync += wait.eq(wait - 1)
                with m.If(follows):
                    m.next = "RUN"
                with m.Elif(wait == 0):
                    m.next = "LOAD"
        with m.If(changes):
            m.d.sync += [number.eq(~number), leaving.eq(self._latency - 1)]
        with m.If(begins | changes):
            m.d.sync += [
                own.eq(coming),
                behind.eq(Mux(coming + 1 == program.count, 0, coming + 1)),
                ready.eq(0),
                is_long.eq(0),
            ]
