"""Cycles of a PCU's lanes: a group of elements per cycle, and a pause between two phases."""

from __future__ import annotations

from typing import Any

from hw.arch.lanes.lane_room import ROUND_TRIP
from hw.arch.lanes.phase_word import Reduction
from sw.prove.lane_actors import LaneUnit
from sw.prove.machine import Channel
from sw.timing.flow import Run
from sw.timing.timed_machine import Producer

__all__ = ["TimedLaneUnit"]

#: Cycles from the last group of a vector of results to the vector at the output
#: (`hw.pcu.lane`, `hw.pcu.result_packer`): its room is free again a cycle later.
_DEPTH = ROUND_TRIP - 1
#: Cycles from the last group of a phase to the first of the next one (`hw.pcu.lane_issue`).
_PHASE = 22
#: Cycles between two changes of a running sum or extreme (`hw.pcu.statistics`).
_CHANGE = 4


class TimedLaneUnit(Producer, LaneUnit):
    """Lanes that issue a group of elements per cycle, once its vectors are there."""

    #: Groups of a unit: as many elements as a vector has words.
    groups = 1.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._issued = Run(0.0, 0.0, 0)

    @property
    def busy(self) -> float:
        """Cycles in which it issues a group, of the whole program."""
        units = zip(self._counts, self._phases, strict=True)
        return self.groups * sum(count * phase.elements_per_word for count, phase in units)

    def _issue(self, units: int) -> None:
        phase = self._phases[self._run]
        cycles = self.groups
        if phase.reduction not in (Reduction.NONE, Reduction.REPLACE):
            cycles = max(cycles, _CHANGE / phase.elements_per_word)
        held = ((self.source, self._head), (self.auxiliary, self._beside))
        first = last = self.free
        for port, count in held:
            if port is not None and count:
                timed: Any = port
                first = max(first, timed.buffer.next_arrival())
        last = first + units * cycles - 1
        self._issued = Run(first, last, units)
        before = self._run
        super()._issue(units)
        for (port, count), left in zip(held, (self._head, self._beside), strict=True):
            if port is not None and left < count:
                timed = port
                came = timed.buffer.arrived(count - left)
                last = max(last, came.last + cycles - 1)
                timed.buffer.take(Run(first + cycles - 1, last, count - left))
        self.free = max(self.free, last + 1)
        if self._run > before and len(self._program.phases) > 1:
            self.free = max(self.free, last + _PHASE)

    def leaves(self, channel: Channel, count: int) -> Run:
        run = self._issued
        interval = (run.last - run.first + 1) / count
        return Run(run.first + interval - 1 + _DEPTH, run.last + _DEPTH, count)

    def left(self, channel: Channel, run: Run) -> None:
        self.free = max(self.free, run.last - _DEPTH + 1)

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self._issued = self._issued.later(cycles)
