"""Cycles of AGCU streams: commands, tokens, boxes in the order of the arbiter."""

from __future__ import annotations

from collections import deque
from typing import Any

from sw.prove.agcu_actors import BoxServer, BoxStream, IndexVectors, StoredTokens, TokenCount
from sw.prove.machine import Channel, Port
from sw.prove.pattern import Pattern
from sw.timing.box_rows import BoxRows
from sw.timing.flow import Run
from sw.timing.memory_port import QUEUE, LoadSide, StoreSide
from sw.timing.timed_machine import Producer, TimedConsumer

__all__ = [
    "TimedBoxServer",
    "TimedBoxStream",
    "TimedIndexVectors",
    "TimedStoredTokens",
    "TimedTokenCount",
]

#: Cycle of the first command, and cycles between two of a stream (`hw.agcu.issuer`).
_FIRST, _APART = 7, 7
#: Commands of a stream ahead of the box reader (`hw.tma.arbiter`, `hw.lib.fifo`).
_AHEAD = 5


class TimedTokenCount(TimedConsumer, TokenCount):
    """Token counter that knows when each token has arrived."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._times: deque[float] = deque([0.0] * self.count)

    def take(self, count: int) -> None:
        came = self.flow.arrived(count)
        self.flow.take(came)
        # The count is a register.
        self._times.extend(came.at(number) + 1 for number in range(count))
        super().take(count)

    def spend(self, count: int) -> None:
        for _ in range(count):
            self._times.popleft()
        super().spend(count)

    def given(self, tokens: int) -> float:
        """Cycle in which so many tokens are there, which have arrived."""
        return self._times[tokens - 1]

    def shift(self, cycles: float) -> None:
        """Move what has arrived to so many cycles later."""
        self._times = deque(at + cycles for at in self._times)


class TimedIndexVectors(TimedTokenCount, IndexVectors):
    """Index stream that knows when each vector has arrived."""


class TimedBoxStream(BoxStream):
    """Boxes of one stream with the cycles of their commands."""

    rows: BoxRows
    issued = float("-inf")  # cycle of the last command

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.begun: deque[float] = deque(maxlen=_AHEAD)

    def pattern(self) -> Pattern:
        sizes, kinds = super().pattern().columns
        return Pattern(self.boxes, (sizes, kinds, self.rows.places()))

    def command(self) -> float:
        """Cycle of the next command, whose tokens have arrived."""
        at = max(float(_FIRST), self.issued + _APART)
        if len(self.begun) == _AHEAD:
            at = max(at, self.begun[0])
        counts: Any = self.waits
        return float(max([at, *(count.given(tokens) for count, tokens in counts)]))

    def shift(self, cycles: float) -> None:
        """Move its commands to so many cycles later."""
        self.issued += cycles
        self.begun = deque((at + cycles for at in self.begun), _AHEAD)


class TimedBoxServer(Producer, BoxServer):
    """Server that takes the command which the arbiter would take, one box at a time."""

    side: LoadSide | StoreSide
    _run: Run
    #: Cycles for which the command of the box has waited for its tokens.
    _credit = 0.0

    def when(self) -> float:
        if self._box is not None:
            return self.free
        streams: Any = self.streams
        commands = [stream.command() for stream in streams if stream.ready()]
        return max(self.side.free, min(commands) + QUEUE) if commands else self.free

    def _next(self) -> bool:
        if self._box is None:
            ready: Any = [stream for stream in self.streams if stream.ready()]
            if not ready:
                return False
            commands = [stream.command() for stream in ready]
            # Those that wait take turns: the one that was served last is last in the list.
            limit = max(self.side.free, min(commands) + QUEUE)
            stream = next(s for s, at in zip(ready, commands, strict=True) if at + QUEUE <= limit)
            self._serve(stream)
            self.streams.remove(stream)
            self.streams.append(stream)
        return True

    def _serve(self, stream: TimedBoxStream) -> None:
        command = stream.command()
        self._credit = command - max(float(_FIRST), stream.issued + _APART)
        address_cycles, width, rows = stream.rows.box(stream.moved)
        stream.issued = command
        run = self.side.box(command, address_cycles, rows, width)
        stream.begun.append(self.side.free)
        if run is not None:
            self._run = run
            self.free = run.first
        self._begin(stream)

    def give_way(self) -> bool:
        return False  # it takes any stream in its time

    def advance(self) -> None:
        if self.step():
            self.machine.wake(self)

    def leaves(self, channel: Channel, count: int) -> Run:
        if count < self._run.size:
            run, self._run = self._run.cut(count)
            return run
        return self._run

    def left(self, channel: Channel, run: Run) -> None:
        side: Any = self.side
        timed: Any = channel
        self._tell(run, timed.late)
        side.held_up(run.last)
        late = run.last + 1 - self._run.first
        if self._left > run.size and late > 0:
            self._run = Run(
                self._run.first + late,
                max(self._run.last, self._run.first + late + self._run.size - 1),
                self._run.size,
            )
        self.free = run.last + 1

    def accept(self, port: Port, count: int) -> None:
        side: Any = self.side
        timed: Any = port
        run = side.take(timed.buffer.arrived(count))
        timed.buffer.take(run)
        self._tell(run, 0.0)
        self.free = run.last + 1
        super().accept(port, count)

    def _tell(self, run: Run, room: float) -> None:
        machine: Any = self.machine
        if self._box is not None:
            machine.tell(self._box.name, run, max(room, self._credit), self._box.moved)
            self._credit = 0.0

    def _move(self, count: int) -> None:
        if count == self._left and self._box is not None and self._box.stored is not None:
            stored: Any = self._box.stored
            side: Any = self.side
            stored.times.append(side.ends())
        super()._move(count)

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self.side.shift(cycles)
        if self._box is not None and self._box.channel is not None:
            self._run = self._run.later(cycles)


class TimedStoredTokens(Producer, StoredTokens):
    """Source of completion tokens that knows when each box is visible."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.times: deque[float] = deque()

    def when(self) -> float:
        return max(self.free, self.times[0]) if self.times else self.free

    def leaves(self, channel: Channel, count: int) -> Run:
        at = max(self.free, self.times.popleft() + 1)
        return Run(at, at, count)

    def left(self, channel: Channel, run: Run) -> None:
        machine: Any = self.machine
        machine.tell(channel.name, run)
        self.free = run.last + 1

    def shift(self, cycles: float) -> None:
        super().shift(cycles)
        self.times = deque(at + cycles for at in self.times)
