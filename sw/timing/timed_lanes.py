"""Cycles of a PCU's lanes: a group of elements per cycle, and pauses between phases."""

from __future__ import annotations

from typing import Any

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_room import ACTIVATION_ROOM, ROUND_TRIP
from hw.arch.lanes.phase_word import AuxiliaryUse, PhaseSource
from hw.numeric.division import ceil_div
from sw.prove.lane_actors import LaneUnit
from sw.prove.machine import Channel
from sw.timing.flow import Run
from sw.timing.timed_machine import Producer, TimedPort

__all__ = ["CHANGE", "FOLLOWING", "KEPT_AFTER", "LANE_DEPTH", "PHASE_CHANGE", "TimedLaneUnit"]

#: Cycles from the last group of a vector of results to the vector at the output
#: (`hw.pcu.lane`, `hw.pcu.result_packer`): its room is free again a cycle later.
LANE_DEPTH = ROUND_TRIP - 1
#: Cycles from the last group of a phase to the first of the next one, unless it may follow at once
#: (`hw.pcu.lane_issue`).
PHASE_CHANGE = 22
#: Cycles from a phase that has followed at once to the next one that does.
FOLLOWING = 19
#: Groups of a strip behind which a joined phase may follow at once: kept words are there.
KEPT_AFTER = 19
#: Cycles between two changes of a running sum or extreme (`hw.pcu.statistics`).
CHANGE = 4


class TimedLaneUnit(Producer, LaneUnit):
    """Lanes that issue a group of elements per cycle, once its vectors are there."""

    #: Groups of a unit: as many elements as a vector has words.
    groups = 1.0
    buffered = ACTIVATION_ROOM

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._issued = Run(0.0, 0.0, 0)
        #: Cycle from which on the next phase may follow at once.
        self._follows = 0.0

    @property
    def busy(self) -> float:
        """Cycles in which it issues a group, of the whole program."""
        units = zip(self._counts, self._phases, strict=True)
        return self.groups * sum(
            count * joined.elements_per_word * len(joined.phases) for count, joined in units
        )

    def _needs(self, units: int) -> list[tuple[TimedPort, int, int]]:
        """Ports of the vectors that the next units take: their number, and the units of one."""
        phase = self._phases[self._run].phases[self._step]
        per_word, beside = phase.elements_per_word, phase.auxiliary_form.per_word
        # Its vector has left the stream behind the first strip of the packet.
        is_latched = phase.auxiliary is AuxiliaryUse.LATCHED and self._begin > 0
        wanted: list[tuple[Any, int, int]] = []
        if phase.source is PhaseSource.AUXILIARY and not phase.kept_words:
            wanted.append((self.auxiliary, self._beside, per_word))
        elif phase.source is not PhaseSource.STATISTICS and not phase.kept_words:
            wanted.append((self.source, self._head, per_word))
        if phase.auxiliary is AuxiliaryUse.VECTOR:
            wanted.append((self.auxiliary, self._beside, beside))
        elif phase.auxiliary is not AuxiliaryUse.NONE and not is_latched:
            wanted.append((self.auxiliary, min(1, self._beside), units))
        found = []
        for port, held, each in wanted:
            count = ceil_div(self._units + units, each) - self._units // each
            found.append((port, min(held, count), each))
        return [(port, count, each) for port, count, each in found if count]

    def _issue(self, units: int) -> None:
        phase = self._phases[self._run].phases[self._step]
        cycles = self.groups
        if phase.reduction.runs:
            cycles = max(cycles, CHANGE / phase.elements_per_word)
        first, last = self.free, 0.0
        for port, count, each in self._needs(units):
            begins, ends = port.buffer.arrivals(count)
            first, last = max(first, begins), max(last, ends + min(each, units) * cycles - 1)
        last = max(last, first + units * cycles - 1)
        self._issued = Run(first, last, units)
        machine: Any = self.machine
        machine.tell(self.name, Run(first, last, round(units * cycles)))
        self.free = last + 1
        held = ((self.source, self._head), (self.auxiliary, self._beside))
        before, strip = (self._run, self._step, self._begin), self._units + units - self._begin
        super()._issue(units)
        for (end, count), rest in zip(held, (self._head, self._beside), strict=True):
            if end is not None and rest < count:
                timed: Any = end
                timed.buffer.arrived(count - rest)
                interval = (last - first + 1) / (count - rest)
                timed.leaves(Run(first + interval - 1, last, count - rest))
        changed = (self._run, self._step, self._begin) != before
        if changed and len(self._program.phases) > 1:
            self._change(phase, last, strip * cycles)

    def _change(self, phase: LanePhase, last: float, groups: float) -> None:
        """Wait until the next phase may begin, behind the last group of one or of its strip."""
        ended = self._run == len(self._phases)
        following = None if ended else self._phases[self._run].phases[self._step]
        waits = following is None or (following.kept_words and groups < KEPT_AFTER)
        if following is not None and not waits and following.follows(phase):
            self.free = max(self.free, self._follows)
            self._follows = self.free + FOLLOWING
        else:
            self.free = max(self.free, last + PHASE_CHANGE)
        if not ended and self.free > last + 1:
            # The hardware counts the pause between two phases as work.
            pause = round(self.free - last) - 1
            machine: Any = self.machine
            machine.tell(self.name, Run(last + 1, last + pause, pause))

    def leaves(self, channel: Channel, count: int) -> Run:
        run = self._issued
        interval = (run.last - run.first + 1) / count
        return Run(run.first + interval - 1 + LANE_DEPTH, run.last + LANE_DEPTH, count)

    def left(self, channel: Channel, run: Run) -> None:
        self.free = max(self.free, run.last - LANE_DEPTH + 1)

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self._issued = self._issued.later(cycles)
        self._follows += cycles
