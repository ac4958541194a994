"""Cycles of PMU engines: slots open when barriers complete, two engines share a memory port."""

from __future__ import annotations

from collections import deque
from typing import Any

from sw.prove.machine import Channel, Port
from sw.prove.pmu_actors import Engine, IndexPort, ReadEngine, WriteEngine
from sw.timing.flow import Run
from sw.timing.timed_machine import Producer, TimedPort

__all__ = ["TimedEngine", "TimedIndexPort", "TimedReadEngine", "TimedWriteEngine"]

#: Cycles from the end of a slot to the first access that its barrier lets in (`hw.lib.barrier`).
_BARRIER = 1
#: Cycles from the request of a read to its vector at the output: banks 3, output FIFO 2
#: (`hw.pmu.banks.READ_LATENCY`, `hw.pmu.output`).
READ = 5
#: Cycles from the end of a slot to its token at the output (`hw.lib.stream.ElasticBuffer`).
_TOKEN = 1
#: Cycles from the arrival of a vector to its write (`hw.lib.stream.ElasticBuffer`).
_INPUT = 1
#: Cycles from one sum to the next: the banks read, then store (`hw.pmu.banks`).
_SUM = 2


class TimedEngine(Producer, Engine):
    """Engine that moves a vector per cycle, or every other one beside its rival or if it adds."""

    #: The other engine of its memory port.
    rival: TimedEngine | None = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.free = 1.0  # the first step of its counter chain
        self._pause = 0  # the visit before which the run pauses
        self._moved = Run(-1.0, -1.0, 0)
        self._closings: deque[float] = deque([0.0], maxlen=4 + 2 * self.program.ring.count)

    @property
    def vectors(self) -> int:
        """Vectors of all its visits."""
        return int(self._passes.vectors.sum())

    @property
    def held(self) -> bool:
        return self._visit >= self._pause and not self.done

    def hold(self, visits: int) -> None:
        """Let the run pause before the visit that lies `visits` ahead; nothing is held up."""
        machine: Any = self.machine
        machine.pacemaker = self
        self._pause = self._visit + visits

    def closing(self, turn: int) -> float:
        """Cycle in which it has closed a turn, one of the last."""
        back = self.closed - turn
        return self._closings[-back] if back <= len(self._closings) else 0.0

    @property
    def step_cycles(self) -> int:
        """Least cycles from a vector of its next visit to the one after it."""
        return _SUM if self.adds and self._needs[self._visit] else 1

    def opens(self) -> float:
        """Cycle in which the slot of its next visit opens, which must be known."""
        turn = self._turns[self._visit]
        if turn < self.lag or not self.others:
            return 0.0
        others: Any = self.others
        return float(max(other.closing(turn - self.lag) for other in others) + _BARRIER)

    def when(self) -> float:
        if self.done or not self._is_open():
            return self.free
        return max(self.free, self.opens())

    def ready(self, port: Port) -> float:
        return 0.0 if port is self.index_port else self.when()

    def access(self, first: float, last: float, count: int) -> Run:
        """Cycles of accesses that could take place in these ones, were the port its own."""
        first = max(first, self.free, self.opens())
        if self.index_port is not None and self._needs[self._visit]:
            index: Any = self.index_port
            first = max(first, index.buffer.next_arrival() + _INPUT)
        last = max(last, first + (count - 1) * self.step_cycles)
        if self.rival is not None:
            other = self.rival._moved
            common = min(last, other.last) - max(first, other.first) + 1
            if common > 0 and other.size:
                share = other.size / (other.last - other.first + 1)
                last += min(count, common) * max(0.0, share + count / (last - first + 1) - 1)
        return Run(first, last, count)

    def move(self, count: int) -> None:
        if count == self._left and self._closes[self._visit]:
            self._closings.append(self._moved.last)
        super().move(count)

    def accept(self, port: Port, count: int) -> None:
        timed: Any = port
        self._index_taken(timed, count)
        super().accept(port, count)

    def _index_taken(self, port: TimedPort, count: int) -> None:
        port.buffer.arrived(count)
        port.buffer.take(Run(self._moved.last, self._moved.last, count))

    def _tell(self, run: Run, room: float) -> None:
        machine: Any = self.machine
        machine.tell(self.name, run, room, int(self._turns[self._visit]))

    def leaves(self, channel: Channel, count: int) -> Run:
        return Run(self._moved.last + _TOKEN, self._moved.last + _TOKEN, count)

    def left(self, channel: Channel, run: Run) -> None:
        machine: Any = self.machine
        machine.tell(channel.name, run)

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self._moved = self._moved._replace(
            first=self._moved.first + cycles, last=self._moved.last + cycles
        )
        self._closings = deque((at + cycles for at in self._closings), self._closings.maxlen)


class TimedWriteEngine(TimedEngine, WriteEngine):
    """Write engine, which writes vectors as they arrive."""

    def accept(self, port: Port, count: int) -> None:
        if port is not self.index_port:
            timed: Any = port
            came = timed.buffer.arrived(count)
            self._moved = self.access(came.first + _INPUT, came.last + _INPUT, count)
            machine: Any = self.machine
            if machine.watcher is not None:
                self._tell(self._moved, self.opens() - max(came.first + _INPUT, self.free))
            self.free = self._moved.last + self.step_cycles
            timed.buffer.take(self._moved)
        else:
            timed = port
            self._index_taken(timed, count)
        WriteEngine.accept(self, port, count)


class TimedReadEngine(TimedEngine, ReadEngine):
    """Read engine, whose vectors leave the banks and its output FIFO some cycles later."""

    def advance(self) -> None:
        if self.step():
            self.machine.wake(self)

    def leaves(self, channel: Channel, count: int) -> Run:
        if channel is not self.channel:
            return super().leaves(channel, count)
        return self.access(0.0, 0.0, count)

    def left(self, channel: Channel, run: Run) -> None:
        if channel is not self.channel:
            super().left(channel, run)
            return
        timed: Any = channel
        self._tell(run, timed.late)
        self._moved = run
        self.free = run.last + 1


class TimedIndexPort(TimedPort, IndexPort):
    """Port of an index stream."""
