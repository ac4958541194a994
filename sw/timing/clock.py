"""The clock of a timed run as one of its parts: repeats must be equal in cycles, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sw.prove.machine import Machine, Part
from sw.timing.timed_machine import Clocked

__all__ = ["Clock"]

#: Steps of a cycle that are told apart.
_STEPS = 1024
#: Cycles after which it does not matter any longer how long a part has been waiting.
_LONG = 4096


class Clock(Part):
    """The cycle of the pacemaker, and the cycles of all other parts from there.

    So two equal markings are equal in what is still to come, and a repeat takes as long as the
    period before it.

    Parameters
    ----------
    machine : Machine
    parts : sequence of Part
        All other parts of the run.
    """

    def __init__(self, machine: Machine, parts: Sequence[Part]) -> None:
        self._machine: Any = machine
        self._clocked: list[Any] = [part for part in parts if isinstance(part, Clocked)]
        self._shifted: list[Any] = [part for part in parts if hasattr(part, "shift")]

    def state(self) -> tuple[int, ...]:
        now = self._machine.pacemaker.free
        ages = [round(max(part.free - now, -_LONG) * _STEPS) for part in self._clocked]
        return (round(now * _STEPS), *ages)

    def skip(self, count: int) -> None:
        cycles = count / _STEPS
        if cycles:
            self._machine.shift(cycles)
            for part in self._shifted:
                part.shift(cycles)
