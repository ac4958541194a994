"""Execution engine of a timed run: actors in the order of their cycles, channels with delays."""

from __future__ import annotations

import abc
import heapq
from collections.abc import Callable, Sequence
from typing import Any

from sw.prove.machine import Actor, Channel, Consumer, Core, Machine, Port
from sw.prove.merge_actors import ClosedEnd
from sw.prove.pmu_actors import Engine
from sw.prove.unrolled_loops import MOST_STEPS, StepLimitError
from sw.timing.flow import Flow, Run

#: Depth of the buffer at every input of a switch.
_ENTRIES = 2
#: Payloads that move together where one consumer holds up the others: when the next ones find room
#: depends on when it has taken these.
_TOGETHER = 2

#: What is told of a move: the name of who moves, its cycles, the cycles just before in which it
#: waited for room, and the number of the slot's turn or of the box, or -1.
Watcher = Callable[[str, Run, float, int], None]
#: Switches on the way to a consumer.
Way = tuple[tuple[int, int], ...]

__all__ = [
    "Clocked",
    "Producer",
    "TimedChannel",
    "TimedClosedEnd",
    "TimedConsumer",
    "TimedMachine",
    "TimedPort",
    "Watcher",
]


class TimedMachine(Machine):
    """Work list in the order of cycles.

    An actor that runs moves payloads of later cycles, too, so the order is that of the first cycle
    of each move. Only choices among streams depend on it.
    """

    def __init__(self, limit: int = MOST_STEPS) -> None:
        super().__init__(limit)
        self._heap: list[tuple[float, int, Any]] = []
        self._number = 0
        #: The run pauses when this engine is held.
        self.pacemaker: Engine | None = None
        #: Is told of each move, if set.
        self.watcher: Watcher | None = None

    def tell(self, who: str, run: Run, room: float = 0.0, number: int = -1) -> None:
        """Tell the watcher, if there is one, of a move."""
        if self.watcher is not None:
            self.watcher(who, run, room, number)

    def wake(self, who: Actor | Port | None) -> None:
        if who is not None and who not in self._listed:
            self._listed.add(who)
            self._number += 1
            heapq.heappush(self._heap, (_when(who), self._number, who))

    def run(self) -> None:
        heap, listed = self._heap, self._listed
        while heap:
            _, _, who = heapq.heappop(heap)
            listed.discard(who)
            self.steps += 1
            if self.steps > self._limit:
                raise StepLimitError("Timed run", self.steps, self._limit)
            who.advance()
            if self.pacemaker is not None and self.pacemaker.held:
                return

    def shift(self, cycles: float) -> None:
        """Move what is on the list to so many cycles later."""
        self._heap = [(at + cycles, number, who) for at, number, who in self._heap]


def _when(who: Actor | Port) -> float:
    part: Any = who.core if isinstance(who, Port) else who
    return float(part.when())


class Clocked:
    """A part with cycles: the first one in which it may move again."""

    free: float = 0.0
    #: Vectors of a packet that wait for it, if it takes them more slowly than they come.
    buffered = 1 << 62

    def when(self) -> float:
        """Earliest cycle of its next move, as far as known."""
        return self.free

    def ready(self, port: Port) -> float:
        """Cycle in which it can take the next payload of a port, as far as known."""
        return self.free

    def shift(self, cycles: float) -> None:
        """Move its cycles to so many later ones."""
        self.free += cycles


class Producer(Clocked, abc.ABC):
    """An actor that says when payloads leave it."""

    #: Cycles between two payloads when it has been held up.
    interval = 1.0

    @abc.abstractmethod
    def leaves(self, channel: Channel, count: int) -> Run:
        """Cycles in which its next payloads can leave, if there is room for them."""

    @abc.abstractmethod
    def left(self, channel: Channel, run: Run) -> None:
        """Its payloads have left."""


class _Fork:
    """A switch on the way of a channel behind which branches part.

    Parameters
    ----------
    ends : list of (TimedConsumer, int)
        The consumers behind it, and the switches to each.
    """

    def __init__(self, ends: list[tuple[Any, int]]) -> None:
        self._ends = ends

    def opens(self, number: int) -> float:
        """Cycle from which no branch is so late that it keeps a payload from the others."""
        found = 0.0
        for end, hops in self._ends:
            # A branch takes what its buffers hold, and one that waits at the fork.
            room = _ENTRIES * hops + 1
            at = end.flow.took(number - room, end.ready) + hops + 1
            if at > found:
                found = at
        return found


class TimedChannel(Channel):
    """Channel that gives each payload the cycle in which it leaves the producer."""

    def __init__(self, machine: Machine, name: str) -> None:
        super().__init__(machine, name)
        self.flows: list[Flow] = []
        #: Of each consumer, when it can take one of the next payloads.
        self._ready: list[Callable[[int], float]] = []
        self._forks: list[list[tuple[_Fork, int]]] = []
        #: Cycles for which the last payloads waited for room.
        self.late = 0.0
        #: Most payloads that move together.
        self._together = 1 << 62

    def attach(self, consumer: Consumer, room: int) -> None:
        super().attach(consumer, room)
        # The network replaces it by that of the path through switches.
        timed: Any = consumer
        timed.flow = Flow(1, 1, room)
        self.flows.append(timed.flow)
        self._ready.append(timed.ready)
        self._forks.append([])

    def connect(self, ways: Sequence[Way], delay: int) -> None:
        """Set the switches to each consumer, and the cycles from a move to the first of them.

        Without such cycles a payload moves when it is at the output, behind the buffer there.
        """
        self.flows = []
        taps: Any = self.taps
        ends = [tap.consumer for tap in taps]
        for end, way in zip(ends, ways, strict=True):
            stages = len(way) + bool(self.entries) * (1 if delay else 2)
            room = _ENTRIES * len(way) + self.entries
            end.flow = Flow(delay + len(way), stages, room)
            self.flows.append(end.flow)
        if len(taps) > 1 and any(end.holds_up for end in ends):
            self._together = _TOGETHER
        forks: dict[Way, _Fork] = {}
        for depth in range(1, max(map(len, ways), default=0) + 1):
            for way in {way[:depth] for way in ways if len(way) >= depth}:
                inner = [number for number, each in enumerate(ways) if each[:depth] == way]
                branches = {ways[number][depth : depth + 1] for number in inner}
                if len(branches) > 1 or sum(len(ways[number]) == depth for number in inner) > 1:
                    forks[way] = _Fork([(ends[n], len(ways[n]) - depth) for n in inner])
        self._forks = [
            [
                (forks[way[:depth]], len(way) - depth)
                for depth in range(1, len(way) + 1)
                if way[:depth] in forks
            ]
            for way in ways
        ]

    def opens(self, ahead: int = 0) -> float:
        """Cycle from which there is room for one of the next payloads, as far as known."""
        return self._opens(self.written + ahead)

    def _opens(self, number: int) -> float:
        found = 0.0
        for flow, ready in zip(self.flows, self._ready, strict=True):
            at = flow.took(number - flow.capacity, ready) + flow.back
            if at > found:
                found = at
        return found

    def room(self) -> int:
        return min(super().room(), self._together)

    def push(self, count: int) -> None:
        producer: Any = self.producer
        run: Run = producer.leaves(self, count)
        newest = self.written + count - 1
        late = self.opens() - run.first
        self.late = max(0.0, late)
        if late > 0:
            first = run.first + late
            run = Run(first, max(run.last, first + (count - 1) * producer.interval), count)
        # Several consumers lie behind a fork, which is asked once for all of them.
        opened: dict[_Fork, tuple[float, float]] = {}
        for flow, forks in zip(self.flows, self._forks, strict=True):
            first, last = run.first + flow.delay, run.last + flow.delay
            for fork, way in forks:
                if fork not in opened:
                    begin = fork.opens(self.written)
                    opened[fork] = begin, begin if count == 1 else fork.opens(newest)
                begin, end = opened[fork]
                first = max(first, begin + way)
                last = max(last, end + way)
            flow.send(Run(first, max(last, first + count - 1), count))
        super().push(count)
        last = max(run.last, self._opens(newest))
        producer.left(self, Run(run.first, last, count))

    def skip(self, count: int) -> None:
        super().skip(count)
        for flow in self.flows:
            flow.taken += count

    def shift(self, cycles: float) -> None:
        """Move every payload to so many cycles later."""
        for flow in self.flows:
            flow.shift(cycles)


class TimedConsumer:
    """A consumer of payloads that have cycles."""

    flow: Flow
    #: Whether it may keep payloads from the other consumers of its channel for long.
    holds_up = False

    def ready(self, ahead: int) -> float:
        """Cycle in which it can take one of the next payloads, as far as known."""
        return 0.0


class TimedPort(TimedConsumer, Port):
    """Port that knows when each payload has entered its buffer, and when it has left it."""

    def __init__(
        self, machine: Machine, name: str, core: Core, entries: int, *filters: Any
    ) -> None:
        super().__init__(machine, name, core, entries, *filters)
        self.buffer = Flow(0, 1, entries)
        self._entered = 0
        #: Payloads of the buffer; without any, a payload stands in the switch until it is taken.
        self.depth = entries
        #: Cycles from the entry of a payload until the core can take it.
        self.passage = 0
        if self._modulus > 1:
            timed: Any = core
            self.holds_up = max(self._lengths, default=0) > timed.buffered

    def ready(self, ahead: int) -> float:
        if not self._accepts():
            return 0.0
        return self._enters(self._entered + ahead) if self.depth else self._core_ready(ahead)

    def _enters(self, number: int) -> float:
        """Cycle from which the buffer has room for a payload of its own."""
        return self.buffer.took(number - self.depth, self._core_ready) + 1

    def _core_ready(self, ahead: int) -> float:
        core: Any = self.core
        return float(core.ready(self)) + ahead

    def take(self, count: int) -> None:
        run = self.flow.arrived(count)
        own = self._accepts()
        if own and self.depth:
            first = max(run.first, self._enters(self._entered))
            newest = self._enters(self._entered + count - 1)
            run = Run(first, max(run.last, newest, first + count - 1), count)
            self._entered += count
        if own:
            self.buffer.send(run.later(self.passage))
        if self.depth or not own:
            self.flow.take(run)
        super().take(count)

    def leaves(self, run: Run) -> None:
        """The core takes payloads for good in these cycles."""
        self.buffer.take(run)
        if not self.depth:
            self.flow.take(run)

    def shift(self, cycles: float) -> None:
        """Move what is in the buffer to so many cycles later."""
        self.buffer.shift(cycles)


class TimedClosedEnd(TimedConsumer, ClosedEnd):
    """End of a net where nothing takes payloads."""
