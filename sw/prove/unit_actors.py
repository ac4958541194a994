"""Actors of PMUs (engines behind barriers) and of PCUs (array with weight tiles and sum banks)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.pmu import EngineProgram
from sw.prove.machine import Actor, Channel, Core, Machine, Port, Reason
from sw.prove.packets import Packets
from sw.prove.pattern import Pattern
from sw.prove.unrolled_loops import visits

__all__ = ["Engine", "Grid", "ReadEngine", "ResultDrain", "WriteEngine"]

Ints = npt.NDArray[np.int64]


def room_reason(channel: Channel) -> Reason:
    """Reason why a channel accepts no more payloads."""
    consumer = channel.fullest()
    if consumer is None:
        return f"room in {channel.name}", None
    return f"room in {consumer.name}", consumer.holder()


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
        return [room_reason(channel) for channel in self.tokens if channel.room() <= 0]


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
            return [room_reason(self.channel)]
        return self._own_reasons()


class Grid(Core):
    """PE array of a PCU: pairs each activation tile with the next weight tile.

    Parameters
    ----------
    machine : Machine
    name : str
    config : ChipConfig
    tiles : Packets
        The tiles that its filter takes.
    """

    activation: Port
    weight: Port
    results: ResultDrain

    def __init__(self, machine: Machine, name: str, config: ChipConfig, tiles: Packets) -> None:
        super().__init__(machine, name)
        self._columns = config.grid_columns
        lengths, finals = tiles.lengths, tiles.finals
        if tiles.tail:  # a tile that never ends
            lengths, finals = np.append(lengths, tiles.tail + 1), np.append(finals, False)
        self._pattern = Pattern(len(lengths), (finals, lengths))
        self._rows: Sequence[int] = lengths.data
        self._finals: Sequence[int] = finals.data
        self._tile = 0
        self._begun = False
        self._left = self._rows[0] if self._rows else 0
        self._first_of_pass = True
        self._loading = 0  # vectors of the tile that goes to the shadow registers
        self._loaded = False
        self.banks_used = 0

    def advance(self) -> None:
        self.weight.advance()
        self.activation.advance()

    def want(self, port: Port) -> int:
        if port is self.weight:
            return 0 if self._loaded else self._columns - self._loading
        if self._tile == len(self._rows):
            return 0
        if self._begun or (self._loaded and not (self._first_of_pass and self.banks_used == 2)):
            return self._left
        return 0

    def accept(self, port: Port, count: int) -> None:
        if port is self.weight:
            self._loading += count
            if self._loading == self._columns:
                self._loading, self._loaded = 0, True
                self.machine.wake(self.activation)
            return
        if not self._begun:
            self._begun, self._loaded = True, False
            self.banks_used += self._first_of_pass
            self.machine.wake(self.weight)
        self._left -= count
        if self._left:
            return
        self._first_of_pass = bool(self._finals[self._tile])
        if self._first_of_pass:
            self.results.full += 1
            self.machine.wake(self.results)
        self._tile += 1
        self._begun = False
        if self._tile < len(self._rows):
            self._left = self._rows[self._tile]

    def reasons(self) -> list[Reason]:
        if self._tile == len(self._rows):
            return []
        if not self._begun and not self._loaded:
            name = self.weight.tap.channel.name if self.weight.tap else "a stream, but none comes"
            return [(f"weights from {name}", self.weight.source())]
        if not self._begun and self._first_of_pass and self.banks_used == 2:
            return [(f"a free bank from {self.results.name}", self.results)]
        name = self.activation.tap.channel.name if self.activation.tap else "a stream"
        return [(f"a vector from {name}", self.activation.source())]

    def state(self) -> tuple[int, ...]:
        return (
            self._tile,
            self._begun,
            self._left,
            self._first_of_pass,
            self._loading,
            self._loaded,
            self.banks_used,
        )

    def pattern(self) -> Pattern:
        return self._pattern

    def skip(self, count: int) -> None:
        self._tile += count

    def leftovers(self) -> list[str]:
        found = []
        if self._begun or not self._first_of_pass:
            found.append(f"{self.name} holds a pass that no mark ends")
        if self._loading or self._loaded:
            found.append(f"{self.name} holds weights that no tile uses")
        return found


class ResultDrain(Actor):
    """Drain of a PCU: one packet per pass.

    Parameters
    ----------
    machine : Machine
    name : str
    grid : Grid
    sizes : array
        Vectors of each packet.
    """

    channel: Channel

    def __init__(self, machine: Machine, name: str, grid: Grid, sizes: Ints) -> None:
        super().__init__(machine, name)
        self._grid = grid
        self._pattern = Pattern(len(sizes), (sizes,))
        self._sizes: Sequence[int] = sizes.data
        self._pass = 0
        self._left = self._sizes[0] if len(sizes) else 0
        self.full = 0

    def advance(self) -> None:
        while self._pass < self.full:
            count = min(self._left, self.channel.room())
            if count <= 0:
                return
            self.channel.push(count)
            self._left -= count
            if not self._left:
                self._pass += 1
                self._left = self._sizes[self._pass] if self._pass < len(self._sizes) else 0
                self._grid.banks_used -= 1
                self.machine.wake(self._grid.activation)

    def state(self) -> tuple[int, ...]:
        return self._pass, self._left, self.full - self._pass

    def pattern(self) -> Pattern:
        return self._pattern

    def skip(self, count: int) -> None:
        self._pass += count
        self.full += count

    def reasons(self) -> list[Reason]:
        if self._pass < self.full:
            return [room_reason(self.channel)]
        if self._pass < len(self._sizes):
            return [(f"sums from {self._grid.name}", self._grid)]
        return []
