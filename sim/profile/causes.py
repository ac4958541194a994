"""Cause of every cycle of every unit: idle cycles followed along the chain of waits to who holds.

In an interval, a unit that waits for input waits for the supplier that has least to give, one that
waits for room for the consumer that asks least. What these do in the same interval says how it goes
on: work is a cause, a wait goes on to the next unit, and a chain that comes back is one of slots.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.profile.intervals import Intervals
from sim.profile.unit_graph import UnitGraph

__all__ = ["FULL", "Cause", "attribute", "whole_cycles"]

#: Longest chain of waits that is followed.
_LONGEST = 12
#: Share of busy cycles from which on a unit is at its bound.
FULL = 0.95
_BUSY, _INPUT, _ROOM, _IDLE = range(4)

Floats = npt.NDArray[np.float64]


class Cause(NamedTuple):
    """Why a unit does in a cycle what it does: its kind, and who holds the unit up."""

    kind: str
    by: str = ""


Shares = dict[Cause, float]


class _Interval:
    """Shares of the states in one interval, and the causes of its waits."""

    def __init__(
        self,
        graph: UnitGraph,
        shares: Mapping[str, Floats],
        memory: Mapping[str, Floats],
        work: Mapping[str, float],
    ) -> None:
        self._graph, self._shares, self._memory = graph, shares, memory
        #: Share of busy cycles of each unit in the whole kernel.
        self._kernel = work
        self._known: dict[tuple[str, int], Shares] = {}

    def causes(self, unit: str, state: int) -> Shares:
        """Causes of a wait, which sum to 1."""
        found = self._known.get((unit, state))
        if found is None:
            found = self._follow(unit, state, ())
            self._known[unit, state] = found
        return found

    def ended(self, unit: str) -> Shares:
        """Causes of the idle cycles of a unit that has ended.

        They are work on its results, answers of memory to their stores, or none.
        """
        graph, shares = self._graph, self._shares
        behind = [unit]
        for name in behind:
            behind += [other for other in graph.consumers[name] if other not in behind]
        units = [name for name in behind[1:] if name.startswith(("pcu", "agcu"))]
        if not units:
            return {Cause("done"): 1.0}
        busiest = max(units, key=lambda name: float(shares[name][_BUSY]))
        work = float(shares[busiest][_BUSY])
        kind = "port" if busiest.startswith("agcu") else "unit"
        # What is still to be stored is on its way if whoever sends it has not ended.
        unanswered = [
            name
            for name in units
            if name in graph.stores
            and all(shares[other][_IDLE] == 1 for other in graph.suppliers[name])
        ]
        latest = max(unanswered, key=lambda name: float(shares[name][_INPUT]), default=unit)
        answers = min(1 - work, float(shares[latest][_INPUT])) if unanswered else 0.0
        return {
            Cause(kind, busiest): work,
            Cause("memory", latest): answers,
            Cause("done"): 1 - work - answers,
        }

    def _follow(
        self, unit: str, state: int, chain: tuple[tuple[str, int], ...], but: str = ""
    ) -> Shares:
        """Causes of a wait behind a chain of others; `but` is a neighbour that it is not for."""
        if (unit, state) in chain or len(chain) > _LONGEST:
            return self._closed(unit, chain)
        chain = (*chain, (unit, state))
        if unit.startswith("agcu"):
            return self._port(unit, state, chain)
        graph = self._graph
        beside = graph.consumers[unit] if state == _ROOM else graph.suppliers[unit]
        others = tuple(name for name in beside if name != but)
        if but and not others:
            return self._closed(unit, chain)
        return (self._down if state == _ROOM else self._up)(unit, others, chain)

    def _closed(self, unit: str, chain: tuple[tuple[str, int], ...]) -> Shares:
        """A chain that returns: all wait for data on their way from memory, or for turns of slots.

        Of slots, those of the buffer that has the fewest. Without a buffer, it is units that wait
        for what is in each other's pipelines.
        """
        slots = self._graph.slots
        around = [name for name, _ in chain if name in slots]
        if not around:
            return {Cause("unit", unit): 1.0}
        fewest = min(around, key=lambda name: slots.get(name, 0))
        units = {name for name, _ in chain} | {unit}
        feeders = {feeder for name in units for feeder in self._graph.suppliers[name]}
        owed = {name: self._memory[name][0] for name in units | feeders if name in self._memory}
        latest = max(owed, key=owed.__getitem__, default=None)
        if latest is None or (slots.get(fewest) == 1 and fewest in self._graph.refilled):
            return {Cause("slots", fewest): 1.0}
        share = min(1.0, float(owed[latest]))
        return {Cause("memory", latest): share, Cause("slots", fewest): 1 - share}

    def _port(self, unit: str, state: int, chain: tuple[tuple[str, int], ...]) -> Shares:
        """Waits of an AGCU: for memory, for vectors of the mesh, for credits."""
        shares, graph = self._shares[unit], self._graph
        owed, held = self._memory.get(unit, (0.0, 0.0))
        waits = shares[_INPUT] + shares[_ROOM]
        part = min(1.0, (owed + held) / waits) if waits else 0.0
        if state == _ROOM or not graph.suppliers[unit]:
            down = (*graph.credits[unit], *graph.consumers[unit])
            other = self._down(unit, down, chain) if part < 1 else {}
        else:
            other = self._up(unit, graph.suppliers[unit], chain) if part < 1 else {}
        return _mixed((part, self._held(Cause("memory", unit), chain)), (1 - part, other))

    def _held(self, cause: Cause, chain: tuple[tuple[str, int], ...]) -> Shares:
        """A cause, or the buffer of one slot on the way to it, which holds no next turn."""
        one = next((name for name, _ in chain if self._graph.slots.get(name) == 1), None)
        # Data on their way to a slot that is filled once would not come sooner into another one.
        late = cause.kind == "memory" and one not in self._graph.refilled
        if one is not None and not late and self._kernel[cause.by] < FULL:
            return {Cause("slots", one): 1.0}
        return {cause: 1.0}

    def _up(
        self, unit: str, suppliers: tuple[str, ...], chain: tuple[tuple[str, int], ...]
    ) -> Shares:
        """Causes of a wait for the supplier that has least to give."""
        if not suppliers:
            return {Cause("done"): 1.0}
        states = self._shares
        one = min(suppliers, key=lambda name: (states[name][_ROOM], states[name][_BUSY]))
        busy, wait, room, idle = states[one]
        if one.startswith("pmu"):
            # It has nothing for this consumer: it waits for room for another one, or in vain.
            others = [name for name in self._graph.consumers[one] if name != unit]
            held = max((states[name][_BUSY] + states[name][_ROOM] for name in others), default=0.0)
            wait, room = wait + room * (1 - held), room * held
        return _mixed(
            (busy, self._work(one, chain, up=True) if busy else {}),
            (wait, self._follow(one, _INPUT, chain) if wait else {}),
            (room, self._follow(one, _ROOM, chain, unit) if room else {}),
            (idle, self._idle(one, chain) if idle else {}),
        )

    def _down(
        self, unit: str, consumers: tuple[str, ...], chain: tuple[tuple[str, int], ...]
    ) -> Shares:
        """Causes of a wait for the consumer that asks least."""
        if not consumers:
            return {Cause("unit", unit): 1.0}
        states = self._shares
        one = min(consumers, key=lambda name: (states[name][_INPUT], -states[name][_BUSY]))
        busy, wait, room, idle = states[one]
        return _mixed(
            (busy, self._work(one, chain, up=False) if busy else {}),
            (wait, self._follow(one, _INPUT, chain, unit) if wait else {}),
            (room, self._follow(one, _ROOM, chain) if room else {}),
            (idle, self._idle(one, chain) if idle else {}),
        )

    def _idle(self, unit: str, chain: tuple[tuple[str, int], ...]) -> Shares:
        """A PCU without a vector is idle, be it before the first or behind the last one."""
        if unit.startswith("pcu"):
            return self._follow(unit, _INPUT, chain)
        return {Cause("done"): 1.0}

    def _work(self, unit: str, chain: tuple[tuple[str, int], ...], *, up: bool) -> Shares:
        """Who holds others up while a unit works."""
        if unit.startswith("agcu"):
            return self._held(Cause("port", unit), chain)
        others = self._graph.suppliers[unit] if up else self._graph.consumers[unit]
        full = self._kernel[unit] > FULL and not any(self._kernel[other] > FULL for other in others)
        if unit.startswith("pcu") or full:
            return self._held(Cause("unit", unit), chain)
        # A PMU fills and empties slots as fast as those beside it let it.
        step = (unit, _INPUT if up else _ROOM)
        return self._follow(*step, chain)


def _mixed(*parts: tuple[float, Shares]) -> Shares:
    """Causes in proportion to weights, scaled to a sum of 1."""
    total = sum(weight for weight, shares in parts if shares)
    found: Shares = collections.defaultdict(float)
    for weight, shares in parts:
        if total and shares:
            for cause, share in shares.items():
                found[cause] += weight / total * share
    if not total:
        found[Cause("done")] = 1.0
    return dict(found)


def attribute(graph: UnitGraph, intervals: Intervals) -> dict[str, dict[Cause, float]]:
    """Cycles of each unit of the chip by cause, over all intervals of a kernel.

    Parameters
    ----------
    graph : UnitGraph
    intervals : Intervals
    """
    totals: dict[str, dict[Cause, float]] = {
        unit: collections.defaultdict(float) for unit in intervals.states
    }
    lengths = np.diff(intervals.edges)
    used = [unit for unit in graph.units if unit in intervals.states]
    cycles = max(int(lengths.sum()), 1)
    work = {unit: float(intervals.states[unit][:, _BUSY].sum()) / cycles for unit in used}
    # A PCU is idle before its first vector, while it waits, and behind its last.
    works = {unit: np.flatnonzero(intervals.states[unit][:, _BUSY]) for unit in used}
    for unit, states in intervals.states.items():
        if unit not in graph.suppliers:
            totals[unit][Cause("off")] += float(states.sum())
    for number, length in enumerate(lengths):
        shares = {unit: intervals.states[unit][number] / max(length, 1) for unit in used}
        memory = {unit: each[number] / max(length, 1) for unit, each in intervals.memory.items()}
        interval = _Interval(graph, shares, memory, work)
        for unit in used:
            busy, wait, room, idle = (float(each) for each in intervals.states[unit][number])
            found = totals[unit]
            found[Cause("busy")] += busy
            later = works[unit].size and number <= works[unit][-1]
            is_pcu = unit.startswith("pcu")
            if is_pcu and later:
                wait, idle = wait + idle, 0.0
            ended = interval.ended(unit) if is_pcu and idle else {Cause("done"): 1.0}
            for waited, causes in (
                (wait, interval.causes(unit, _INPUT) if wait else {}),
                (room, interval.causes(unit, _ROOM) if room else {}),
                (idle, ended),
            ):
                for cause, share in causes.items():
                    found[cause] += waited * share
    return {
        unit: {cause: count for cause, count in found.items() if count}
        for unit, found in totals.items()
    }


def whole_cycles(causes: Mapping[Cause, float], cycles: int) -> dict[Cause, int]:
    """Round cycles by cause so that they sum to a number, by largest remainders."""
    scale = cycles / total if (total := sum(causes.values())) else 0.0
    exact = {cause: value * scale for cause, value in causes.items()}
    found = {cause: int(value) for cause, value in exact.items()}
    rest = cycles - sum(found.values())
    by_rest = sorted(exact, key=lambda cause: found[cause] - exact[cause])
    for cause in by_rest[:rest]:
        found[cause] += 1
    return {cause: count for cause, count in found.items() if count}
