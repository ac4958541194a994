"""Repeats of a timed run: periods that are equal in marking and in cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sw.prove.machine import Machine, Part
from sw.prove.pmu_actors import Engine
from sw.prove.repeats import Repeats
from sw.timing.timed_machine import Clocked

__all__ = ["TimedRepeats"]

#: Steps of a cycle that are told apart.
_STEPS = 64
#: Share of a period by which parts may come less or more far than the pacemaker: one in so many.
_EQUAL = 256


class _Clock(Part):
    """The cycle of the pacemaker; to skip cycles is to move all parts there.

    Parameters
    ----------
    machine : Machine
    parts : sequence of Part
        All other parts of the run.
    """

    def __init__(self, machine: Machine, parts: Sequence[Part]) -> None:
        self._machine: Any = machine
        self._shifted: list[Any] = [part for part in parts if hasattr(part, "shift")]

    def state(self) -> tuple[int, ...]:
        return (round(self._machine.pacemaker.free * _STEPS),)

    def skip(self, count: int) -> None:
        cycles = count / _STEPS
        self._machine.shift(cycles)
        for part in self._shifted:
            part.shift(cycles)


class _Age(Part):
    """The cycle from which one part is free.

    Parameters
    ----------
    part : Clocked
    """

    def __init__(self, part: Clocked) -> None:
        self._part = part

    def state(self) -> tuple[int, ...]:
        return (round(self._part.free * _STEPS),)

    def skip(self, count: int) -> None:
        pass  # the clock moves it


class TimedRepeats(Repeats):
    """Detector of periods in which all parts that move have come as many cycles further.

    A part that has not moved has been free for longer; that delays nothing. Parts may differ by a
    small share of the period, which bounds the error.

    Parameters
    ----------
    machine : Machine
    parts : sequence of Part
    engines : sequence of Engine
        Candidates for the pacemaker.
    """

    def __init__(self, machine: Machine, parts: Sequence[Part], engines: Sequence[Engine]) -> None:
        ages = [_Age(part) for part in parts if isinstance(part, Clocked)]
        self._ages = len(ages)
        super().__init__(machine, [*parts, *ages, _Clock(machine, parts)], engines)

    def _count(self, before: npt.NDArray[np.int64], period: npt.NDArray[np.int64]) -> int:
        cycles = period[-1]
        ages = period[-1 - self._ages : -1]
        if ((abs(ages - cycles) > cycles // _EQUAL) & (ages != 0)).any() or cycles <= 0:
            return 0
        # An age has no pattern: the clock's stands for all.
        kept = np.where(np.arange(len(period)) < len(period) - 1 - self._ages, period, 0)
        kept[-1] = cycles
        return super()._count(before, kept)
