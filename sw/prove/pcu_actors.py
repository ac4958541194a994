"""Actors of PCUs: the array with its weight tiles and sum banks, and the result drain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from sw.prove.machine import Actor, Channel, Core, Machine, Part, Port, Reason
from sw.prove.packets import Packets
from sw.prove.pattern import Pattern

__all__ = ["Grid", "ResultDrain"]

Ints = npt.NDArray[np.int64]


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
        self._rises: Sequence[int] | None = None
        #: Why a further iteration would not begin as this one did.
        self.restart: str | None = None
        self._rows: Sequence[int] = lengths.data
        self._finals: Sequence[int] = finals.data
        self._tile = 0
        self._begun = False
        self._left = self._rows[0] if self._rows else 0
        self._first_of_pass = True
        self._loading = 0  # vectors of the tile that goes to the shadow registers
        self._loaded = False
        self.banks_used = 0

    def _weights(self) -> int:
        """Vectors of the weights that are loaded next, with those of rises."""
        tile = self._tile + self._begun
        if self._rises is None or tile >= len(self._rises):
            return self._columns
        return self._columns + self._rises[tile]

    def set_rises(self, rises: Ints) -> None:
        """Set the vectors of rises before the weights of each tile."""
        finals, lengths = np.asarray(self._finals), np.asarray(self._rows)
        rises = np.append(rises, np.zeros(len(lengths) - len(rises), np.int64))
        self._rises = rises.data
        self._pattern = Pattern(len(lengths), (finals, lengths, rises))

    def restart_fault(self) -> str | None:
        return self.restart

    def advance(self) -> None:
        self.weight.advance()
        self.activation.advance()

    def want(self, port: Port) -> int:
        if port is self.weight:
            return 0 if self._loaded else self._weights() - self._loading
        if self._tile == len(self._rows):
            return 0
        if self._begun or (self._loaded and not (self._first_of_pass and self.banks_used == 2)):
            return self._left
        return 0

    def accept(self, port: Port, count: int) -> None:
        if port is self.weight:
            self._loading += count
            if self._loading == self._weights():
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

    def neighbours(self) -> Iterable[Part]:
        return (self.results,)

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
    """Drain of a PCU: the results of one pass after the other.

    Parameters
    ----------
    machine : Machine
    name : str
    grid : Grid
    sizes : array
        Vectors of each pass.
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
            return [self.channel.no_room()]
        if self._pass < len(self._sizes):
            return [(f"sums from {self._grid.name}", self._grid)]
        return []
