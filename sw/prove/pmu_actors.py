"""Actors of PMUs: write and read engines, their visits to slots guarded by barriers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.pmu import EngineProgram
from sw.prove.machine import Actor, Channel, Core, Machine, Port, Reason
from sw.prove.pattern import Pattern
from sw.prove.unrolled_loops import visits

__all__ = ["Engine", "ReadEngine", "WriteEngine"]

Ints = npt.NDArray[np.int64]


class Engine(Actor):
    """Engine of a PMU: visits to slots, each guarded by a barrier.

    Parameters
    ----------
    machine : Machine
    name : str
    program : EngineProgram
    """

    def __init__(self, machine: Machine, name: str, program: EngineProgram) -> None:
        super().__init__(machine, name)
        self.program = program
        self._passes = passes = visits(program)
        self._turns: Sequence[int] = passes.turn.data
        self._closes: Sequence[int] = passes.closes.data
        self._sizes: Sequence[int] = passes.vectors.data
        self._visit = 0
        self._left = self._sizes[0]
        self.stop = len(passes.turn)  # the visit that it must not begin
        self.turns = int(np.count_nonzero(passes.closes))
        self.closed = 0
        self.lag = 0  # turns by which the other engines may lag
        self.others: list[Engine] = []  # engines whose arrivals its barriers expect
        self.tokens: list[Channel] = []
        self._open_before = -1  # turns below this one are known to be open

    @property
    def done(self) -> bool:
        """Whether it has ended all its visits."""
        return self._visit == len(self._sizes)

    @property
    def ahead(self) -> int:
        """Visits not yet ended."""
        return len(self._sizes) - self._visit

    @property
    def held(self) -> bool:
        """Whether it has reached the visit that `hold` keeps it from beginning."""
        return self._visit == self.stop and not self.done

    def hold(self, visits: int) -> None:
        """Hold it before the visit that lies `visits` ahead, or at its end."""
        self.stop = min(len(self._sizes), self._visit + visits)

    def state(self) -> tuple[int, ...]:
        closed = self.closed
        return (self._visit, self._left, *[closed - other.closed for other in self.others])

    def pattern(self) -> Pattern:
        passes = self._passes
        before: Ints = np.cumsum(passes.closes) - passes.closes
        # Without other engines its barriers require only the number of its slots.
        turn = passes.turn - before if self.others else passes.turn < self.lag
        return Pattern(len(turn), (turn, passes.closes, passes.vectors))

    def skip(self, count: int) -> None:
        to = self._visit + count
        self.closed += int(np.count_nonzero(self._passes.closes[self._visit : to]))
        self._visit = to

    def _is_open(self) -> bool:
        """Whether the barrier of its slot has completed the phase it waits for."""
        turn = self._turns[self._visit]
        if turn < self._open_before:
            return True
        if turn < self.lag:
            self._open_before = self.lag
        elif not self.others:
            return False
        else:
            self._open_before = min(other.closed for other in self.others) + self.lag
        return turn < self._open_before

    def _may_close(self) -> bool:
        return all(channel.room() > 0 for channel in self.tokens)

    def steps_now(self) -> int:
        """Vectors it could move now within its slot."""
        if self._visit >= self.stop or not self._is_open():
            return 0
        if self._closes[self._visit] and self.tokens and not self._may_close():
            return self._left - 1
        return self._left

    def move(self, count: int) -> None:
        """Move vectors; arrive at the barrier when the slot ends."""
        self._left -= count
        if self._left:
            return
        closes = self._closes[self._visit]
        self._visit += 1
        if not self.done:
            self._left = self._sizes[self._visit]
        if closes:
            self.closed += 1
            for channel in self.tokens:
                channel.push(1)
            for other in self.others:
                other.nudge()

    def nudge(self) -> None:
        """Retry, because a barrier may have completed its phase."""
        self.machine.wake(self)

    def _own_reasons(self) -> list[Reason]:
        if not self._is_open():
            turn = self._turns[self._visit]
            late = [other for other in self.others if other.closed + self.lag <= turn]
            kind = "a free slot from" if self.lag else "a full slot from"
            if not late:
                return [(f"{kind} an engine that is off", None)]
            return [(f"{kind} {other.name}", other) for other in late]
        return [channel.no_room() for channel in self.tokens if channel.room() <= 0]


class WriteEngine(Engine, Core):
    """Write engine, fed by its port."""

    port: Port

    def advance(self) -> None:
        self.port.advance()

    def want(self, port: Port) -> int:
        return self.steps_now()

    def accept(self, port: Port, count: int) -> None:
        self.move(count)

    def reasons(self) -> list[Reason]:
        if self.done:
            return []
        if self.steps_now() > 0:
            source = self.port.source()
            name = self.port.tap.channel.name if self.port.tap else "a stream, but none reaches it"
            return [(f"a vector from {name}", source)]
        return self._own_reasons()


class ReadEngine(Engine):
    """Read engine, which feeds its channel."""

    channel: Channel

    def advance(self) -> None:
        while True:
            count = self.steps_now()
            if count > 0:
                count = min(count, self.channel.room())
            if count <= 0:
                return
            self.channel.push(count)
            self.move(count)

    def reasons(self) -> list[Reason]:
        if self.done:
            return []
        if self.steps_now() > 0:
            return [self.channel.no_room()]
        return self._own_reasons()
