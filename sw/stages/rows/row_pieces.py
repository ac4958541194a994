"""Pieces in which a row passes, and walks over them."""

from __future__ import annotations

import dataclasses

from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level
from hw.numeric.division import ceil_div
from sw.passes.field_limits import Unfit
from sw.stages.long_rows import even_share
from sw.stages.stage_graph import Walk
from sw.stages.walk_loops import loop

__all__ = ["RowPieces"]

_OUTER = Level.WINDOWS.value


@dataclasses.dataclass(frozen=True)
class RowPieces:
    """Columns of a row in pieces of whole vectors, one slot each; the last piece may be shorter.

    A walk over a row takes two steps of its windows where the last piece is shorter: the others,
    then that one.

    Parameters
    ----------
    columns : int
    vector : int
        Elements per vector.
    size : int
        Vectors of a piece.
    """

    columns: int
    vector: int
    size: int

    @classmethod
    def fitting(cls, columns: int, vector: int, most: int) -> RowPieces:
        """The fewest pieces of at most so many elements of a row, about as long as one another.

        Raises
        ------
        Unfit
            If a row has no vector that is full, or there is no room for one.
        """
        if min(most, columns) < vector:
            rule = f"room for {vector} columns, and have as many"
            least = min(most, columns)
            raise Unfit(f"Piece of a row must have {rule}, not {least}", value=least, rule=rule)
        return cls(
            columns, vector, even_share(ceil_div(columns, vector), min(most, MAX_BOX) // vector)
        )

    @property
    def width(self) -> int:
        """Columns of a slot."""
        return self.size * self.vector

    @property
    def slots(self) -> int:
        """Slots of a row."""
        return ceil_div(self.columns, self.width)

    @property
    def last(self) -> int:
        """Columns of the last piece."""
        return self.columns - (self.slots - 1) * self.width

    def windows(self) -> tuple[LoopProgram, LoopProgram]:
        """Loops over windows and slots of a row."""
        if self.slots == 1 or self.last == self.width:
            return LoopProgram(), LoopProgram(self.slots)
        return LoopProgram(2), LoopProgram(self.slots - 1, slope=2 - self.slots, outer=_OUTER)

    def steps(self, columns: int, stride: int) -> LoopProgram:
        """Address loop over a slot, so many columns a step; they divide a vector."""
        count, last = self.width // columns, ceil_div(self.last, columns)
        if self.slots == 1 or last == count:
            return loop(last, stride)
        return LoopProgram(count, stride=stride, slope=last - count, outer=_OUTER)

    def written(self, walk: Walk, passes: int) -> Walk:
        """Walk that writes all pieces of a row, from one that writes a slot."""
        windows = LoopProgram(self.slots)
        return dataclasses.replace(walk, launches=LoopProgram(passes), windows=windows)

    def read(self, walk: Walk, columns: int, passes: int, *, whole: bool) -> Walk:
        """Walk that reads all pieces of a row, from one that reads a slot in steps of columns."""
        windows, slots = self.windows()
        return dataclasses.replace(
            walk,
            loops=(self.steps(columns, walk.loops[0].stride),),
            launches=LoopProgram(passes),
            windows=windows,
            slots=slots,
            last_level=Level.WINDOWS if whole else ENGINE_LOOPS,
        )
