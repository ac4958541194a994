"""Period skipping: repetitions of a period with equal markings are not simulated.

Groups of parts that nothing connects run one after the other, each with periods of its own. One
engine of a group, the pacemaker, is held before a visit until nothing else can move. The marking at
that point depends only on the pacemaker's progress, so a program in a steady state reaches the same
marking again and again; docs/liveness.md says why the repetitions may then be skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sw.prove.machine import Machine, Part
from sw.prove.pattern import Pattern
from sw.prove.pmu_actors import Engine

__all__ = ["Repeats", "connected"]

Ints = npt.NDArray[np.int64]

#: Earlier points with the same marking that are tried as the beginning of a period.
_TRIED = 32
#: Points without a period found after which points are taken less often.
_FRUITLESS = 128
#: Markings that are kept.
_KEPT = 2048
#: More repetitions than any program has.
_ENDLESS = 1 << 62


class Repeats:
    """Detector of periods of a run, which skips their repetitions.

    Parameters
    ----------
    machine : Machine
    parts : sequence of Part
        Every stateful element of the run.
    engines : sequence of Engine
        Candidates for the pacemaker.
    """

    def __init__(self, machine: Machine, parts: Sequence[Part], engines: Sequence[Engine]) -> None:
        self._machine = machine
        self._parts = parts
        self._engines = engines
        self._patterns: list[Pattern] = []
        self._seen: dict[tuple[tuple[int, ...], ...], deque[Ints]] = {}
        self._stride = 1
        self._fruitless = 0
        self._since = 0
        self._pacemaker: Engine | None = None
        self.skipped = 0
        self._choose()

    def _choose(self) -> None:
        """Make the engine with most visits left the pacemaker, unless it is about to end."""
        best = max(self._engines, key=lambda engine: engine.ahead, default=None)
        self._pacemaker = best if best is not None and best.ahead > self._stride else None
        if self._pacemaker is not None:
            self._pacemaker.hold(self._stride)

    def go_on(self) -> bool:
        """Record the marking, skip repetitions, release the pacemaker; returns whether it was held.

        Call it only when nothing else can move.
        """
        pacemaker = self._pacemaker
        if pacemaker is None or not pacemaker.held:
            return False
        self._look()
        if self._machine.steps - self._since < len(self._parts) or self._fruitless > _FRUITLESS:
            self._stride = _longer(self._stride, pacemaker.rounds)
            self._fruitless = 0
        self._since = self._machine.steps
        pacemaker.hold(self._stride)
        if pacemaker.ahead <= self._stride:
            self._choose()
        pacemaker.nudge()
        return True

    def _look(self) -> None:
        states = [part.state() for part in self._parts]
        marking = tuple([state[1:] for state in states])
        places = np.array([state[0] for state in states])
        self._fruitless += 1
        earlier = self._seen.get(marking)
        if earlier is None:
            if len(self._seen) == _KEPT:
                self._seen.clear()
            self._seen[marking] = deque([places], maxlen=_TRIED)
            return
        if not self._patterns:
            self._patterns = [part.pattern() for part in self._parts]
        best, advance = 0, places
        for before in earlier:
            period = places - before
            count = self._count(before, period)
            if count * int(period.sum()) > best:
                best, advance = count * int(period.sum()), count * period
        if best:
            for part, steps in zip(self._parts, advance.tolist(), strict=True):
                part.skip(steps)
            self.skipped += 1
            self._fruitless = 0
            places = places + advance
        earlier.append(places)

    def _count(self, before: Ints, period: Ints) -> int:
        """Number of repetitions of a period; 0 if there are none."""
        count = _ENDLESS
        known: set[tuple[int, ...]] = set()
        for pattern, begin, steps in zip(
            self._patterns, before.tolist(), period.tolist(), strict=True
        ):
            key = (*map(id, pattern.columns), begin, steps)
            if key in known and pattern.columns:
                continue
            known.add(key)
            count = pattern.repeats(begin, steps, count)
            if not count:
                return 0
        return count if count < _ENDLESS else 0


def _longer(stride: int, rounds: Sequence[int]) -> int:
    """A stride of twice as many visits, or more, that divides a round of a loop if one does.

    Periods are whole rounds: with another stride only several of them would be a period.
    """
    for each in rounds:
        if not each % stride:
            for factor in range(2, each // stride + 1):
                if not each % (factor * stride):
                    return factor * stride
    return 2 * stride


def connected(parts: Sequence[Part]) -> list[list[Part]]:
    """Divide the parts of a run into groups that move independently of one another.

    Parameters
    ----------
    parts : sequence of Part
        Every stateful element of the run.

    Returns
    -------
    list of list of Part
        Each group in the order of the parts; the groups in that of their first ones.
    """
    leaders = {part: part for part in parts}

    def leader(part: Part) -> Part:
        while leaders[part] is not part:
            leaders[part] = part = leaders[leaders[part]]
        return part

    for part in parts:
        for other in part.neighbours():
            leaders[leader(other)] = leader(part)
    groups: dict[Part, list[Part]] = {}
    for part in parts:
        groups.setdefault(leader(part), []).append(part)
    return list(groups.values())
