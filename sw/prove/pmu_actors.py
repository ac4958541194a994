"""Actors of PMUs: write and read engines, their visits to slots guarded by barriers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.pmu import EngineProgram
from hw.arch.words.pmu_word import Level
from sw.prove.index_walk import IndexWalk
from sw.prove.machine import Channel, Core, Machine, Part, Port, Reason
from sw.prove.pattern import Pattern
from sw.prove.unrolled_loops import visits

__all__ = ["Engine", "IndexPort", "ReadEngine", "WriteEngine"]

Ints = npt.NDArray[np.int64]


class IndexPort(Port):
    """Port of an index stream: its engine keeps a vector in the buffer while it uses it."""

    def take(self, count: int) -> None:
        super().take(count)
        self._machine.wake(self.core)


class Engine(Core):
    """Engine of a PMU: visits to slots, each guarded by a barrier.

    Parameters
    ----------
    machine : Machine
    name : str
    program : EngineProgram
    indices : IndexWalk or None
        The index vectors that its steps need; they cut its visits into pieces.
    """

    ends_launch = True

    def __init__(
        self, machine: Machine, name: str, program: EngineProgram, indices: IndexWalk | None = None
    ) -> None:
        super().__init__(machine, name)
        self.program = program
        if indices is None:
            self._passes = passes = visits(program)
            self._needs = self._frees = np.zeros(len(passes.turn), np.bool_)
        else:
            self._passes, self._needs, self._frees = indices.pieces(program)
            passes = self._passes
        self.adds = indices is not None and indices.adds  # in the visits that need an index
        self.index_port: Port | None = None
        self._spent = 0  # index vectors used and not yet removed
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
    def rounds(self) -> Sequence[int]:
        """Visits of a round of each loop around them but the outermost, innermost first."""
        loops = self.program.chain.counts()[: Level.ADDRESS]
        rounds = itertools.accumulate((most for _, most in reversed(loops)), operator.mul)
        return [each for each in dict.fromkeys(rounds) if 1 < each < len(self._sizes)]

    @property
    def held(self) -> bool:
        """Whether it has reached the visit that `hold` keeps it from beginning."""
        return self._visit == self.stop and not self.done

    def hold(self, visits: int) -> None:
        """Hold it before the visit that lies `visits` ahead, or at its end."""
        self.stop = min(len(self._sizes), self._visit + visits)

    def neighbours(self) -> Iterable[Part]:
        return self.others

    def state(self) -> tuple[int, ...]:
        closed = self.closed
        return (self._visit, self._left, *[closed - other.closed for other in self.others])

    def pattern(self) -> Pattern:
        passes = self._passes
        before: Ints = np.cumsum(passes.closes) - passes.closes
        # Without other engines its barriers require only the number of its slots.
        turn = passes.turn - before if self.others else passes.turn < self.lag
        columns: tuple[npt.NDArray[Any], ...] = (turn, passes.closes, passes.vectors)
        if self.index_port is not None:
            columns += (self._needs, self._frees)
        return Pattern(len(turn), columns)

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

    def _lacks_index(self) -> bool:
        return bool(self.index_port and self._needs[self._visit] and not self.index_port.held)

    def want(self, port: Port) -> int:
        return self._spent

    def accept(self, port: Port, count: int) -> None:
        self._spent -= count

    def _may_close(self) -> bool:
        return all(channel.room() > 0 for channel in self.tokens)

    def steps_now(self) -> int:
        """Vectors it could move now within its slot."""
        if self._visit >= self.stop or not self._is_open():
            return 0
        if self._lacks_index():
            return 0
        if self._closes[self._visit] and self.tokens and not self._may_close():
            return self._left - 1
        return self._left

    def move(self, count: int) -> None:
        """Move vectors; arrive at the barrier when the slot ends."""
        self._left -= count
        if self._left:
            return
        closes, frees = self._closes[self._visit], self._frees[self._visit]
        self._visit += 1
        if not self.done:
            self._left = self._sizes[self._visit]
        if closes:
            self.closed += 1
            for channel in self.tokens:
                channel.push(1)
            for other in self.others:
                other.nudge()
        if frees and self.index_port is not None:
            self._spent += 1
            self.index_port.advance()

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
        if self.index_port is not None and self._lacks_index():
            return [(f"an index vector at {self.index_port.name}", self.index_port.source())]
        return [channel.no_room() for channel in self.tokens if channel.room() <= 0]


class WriteEngine(Engine):
    """Write engine, fed by its port."""

    port: Port

    def advance(self) -> None:
        self.port.advance()

    def want(self, port: Port) -> int:
        return super().want(port) if port is self.index_port else self.steps_now()

    def accept(self, port: Port, count: int) -> None:
        if port is self.index_port:
            super().accept(port, count)
        else:
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
        while self.step():
            pass

    def step(self) -> bool:
        """Send what it can of one slot now; returns whether it sent anything."""
        count = self.steps_now()
        if count > 0:
            count = min(count, self.channel.room())
        if count <= 0:
            return False
        self.channel.push(count)
        self.move(count)
        return True

    def reasons(self) -> list[Reason]:
        if self.done:
            # It ends when its last vector has left the buffer of the output.
            left = self.channel.undrained()
            return [left] if left else []
        if self.steps_now() > 0:
            return [self.channel.no_room()]
        return self._own_reasons()
