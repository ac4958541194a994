"""States of every unit in each interval of a kernel, from samples of RTL or predicted moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.counters import ACTIVITIES, counter_numbers
from hw.arch.unit_kind import PCU
from sim.native.samples import PORT_COUNTS, KernelSamples
from sw.timing.flow import Run
from sw.timing.timeline import Move, Timeline

__all__ = ["MOST_INTERVALS", "Intervals", "from_samples", "from_timeline", "merged"]

#: Most intervals of a profile; more are joined.
MOST_INTERVALS = 512
_BUSY, _INPUT, _ROOM, _IDLE = range(4)

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Activity of units between some cycles of a run.

    Members
    -------
    edges : array
        Cycles that bound the intervals, counted from the start of the run.
    states : mapping of str to array
        Cycles of each unit by state: intervals × `ACTIVITIES`.
    memory : mapping of str to array
        Cycles of each AGCU's port in which memory owes read data and shows none, and in which it
        takes no address or no data: intervals × 2. Empty if no port was watched.
    """

    edges: Ints
    states: dict[str, Ints]
    memory: dict[str, Ints]


def _with_lanes(samples: KernelSamples, unit: str) -> Ints:
    """States of a PCU that is busy, too, while its lanes take a group of sums.

    The hardware's state is that of the array then: the lanes' cycles are taken from its waits.
    """
    found = samples.activity(unit).copy()
    groups = np.diff(samples.units[unit][:, counter_numbers(PCU)["groups"]])
    more = np.maximum(groups - found[:, _BUSY], 0)
    for state in (_ROOM, _INPUT, _IDLE):
        taken = np.minimum(more, found[:, state])
        found[:, state] -= taken
        found[:, _BUSY] += taken
        more = more - taken
    return found


def from_samples(samples: KernelSamples, origin: int) -> Intervals:
    """Intervals between the samples of a kernel.

    Parameters
    ----------
    samples : KernelSamples
    origin : int
        Cycle of the model that is cycle 0 of the run.
    """
    waits = [PORT_COUNTS.index(name) for name in ("read_owed", "address_held", "write_held")]
    memory = {}
    for name in samples.ports:
        if name.startswith("memory["):
            owed, *held = samples.traffic(name)[:, waits].T
            memory[f"agcu_{name[7:-1]}"] = np.stack([owed, np.maximum(*held)], axis=1)
    states = {
        unit: _with_lanes(samples, unit) if unit.startswith(PCU.name) else samples.activity(unit)
        for unit in samples.units
    }
    return Intervals(samples.cycles - origin, states, memory)


def _marked(cycles: int, runs: Sequence[Run]) -> npt.NDArray[np.bool_]:
    """Cycles in which a payload of some runs moves."""
    found = np.zeros(cycles, dtype=bool)
    for run in runs:
        if run.size >= run.last - run.first + 1:
            found[max(0, int(run.first)) : int(run.last) + 1] = True
        else:
            at = np.linspace(run.first, run.last, run.size).astype(np.int64)
            found[np.clip(at, 0, cycles - 1)] = True
    return found


def _turns(moves: Sequence[Move]) -> dict[tuple[str, int], tuple[int, int]]:
    """First and last cycle of each turn of a slot at a read engine, by engine and turn."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for move in moves:
        if move.part.startswith("R") and move.number >= 0:
            key = move.part, move.number
            begin, end = found.get(key, (int(move.run.first), 0))
            found[key] = begin, max(end, int(move.run.last))
    return found


def _unit_states(cycles: int, moves: Sequence[Move]) -> Ints:
    """State of a unit in each cycle, in the order of the hardware's counters."""
    state = np.full(cycles, _INPUT, dtype=np.int64)
    payloads = [move for move in moves if not move.token]
    for move in payloads:
        if move.room > 0:
            begin = max(0, int(move.run.first - move.room))
            state[begin : int(move.run.first)] = _ROOM
    # A read engine has its whole slot: what it waits for within a turn is room.
    for begin, end in _turns(payloads).values():
        state[max(0, begin) : end] = _ROOM
    if payloads:
        last = max(move.run.last for move in payloads)
        state[int(last) + 1 :] = _IDLE
    state[_marked(cycles, [move.run for move in payloads])] = _BUSY
    return state


def _owed(cycles: int, moves: Sequence[Move], latency: int) -> npt.NDArray[np.bool_]:
    """Cycles in which memory owes the first data of a box."""
    found = np.zeros(cycles, dtype=bool)
    last: dict[str, int] = {}
    for move in moves:
        if move.part.startswith("load") and last.get(move.part) != move.number:
            last[move.part] = move.number
            begin = max(0, int(move.run.first) - latency)
            found[begin : int(move.run.first)] = True
    return found


def from_timeline(
    timeline: Timeline,
    units: Sequence[str],
    origin: int,
    *,
    latency: int,
    most: int = MOST_INTERVALS,
) -> Intervals:
    """Intervals of a predicted kernel.

    Parameters
    ----------
    timeline : Timeline
    units : sequence of str
        All units of the chip; one that never moves is idle.
    origin : int
        Cycle of the run in which the kernel begins.
    latency : int
        Cycles for which memory owes the data of a box before the first of them.
    most : int
        Most intervals.
    """
    cycles = timeline.cycles
    edges = np.unique(np.linspace(0, cycles, min(most, cycles) + 1).astype(np.int64))
    by_unit: dict[str, list[Move]] = {unit: [] for unit in units}
    for move in timeline.moves:
        by_unit[move.unit].append(move)
    states, memory = {}, {}
    for unit, moves in by_unit.items():
        counts = np.zeros((len(edges) - 1, len(ACTIVITIES)), dtype=np.int64)
        if moves:
            state = _unit_states(cycles, moves)
            for number in range(len(ACTIVITIES)):
                counts[:, number] = np.add.reduceat(state == number, edges[:-1])
            if unit.startswith("agcu"):
                owed = _owed(cycles, moves, latency) & (state != _BUSY)
                waits = np.add.reduceat(owed, edges[:-1]).astype(np.int64)
                memory[unit] = np.stack([waits, np.zeros_like(waits)], axis=1)
        else:
            counts[:, _IDLE] = np.diff(edges)
        states[unit] = counts
    return Intervals(edges + origin, states, memory)


def merged(intervals: Intervals, most: int = MOST_INTERVALS) -> Intervals:
    """Join neighbouring intervals so that at most so many are left."""
    count = len(intervals.edges) - 1
    if count <= most:
        return intervals
    begins = np.arange(0, count, -(-count // most))

    def joined(counts: Ints) -> Ints:
        found: Ints = np.add.reduceat(counts, begins, axis=0)
        return found

    return Intervals(
        np.append(intervals.edges[begins], intervals.edges[-1]),
        {name: joined(each) for name, each in intervals.states.items()},
        {name: joined(each) for name, each in intervals.memory.items()},
    )
