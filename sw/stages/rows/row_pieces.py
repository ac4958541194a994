"""Pieces in which a row passes, and walks over them; halves of vectors of widened rows."""

from __future__ import annotations

import dataclasses

from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16
from sw.passes.field_limits import Unfit
from sw.stages.long_rows import even_share
from sw.stages.stage_graph import Walk
from sw.stages.walk_loops import loop

__all__ = ["RowPieces", "half_writes"]

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
    def fitting(cls, columns: int, vector: int, most: int, unit: int = 1) -> RowPieces:
        """The fewest pieces of at most so many elements of a row, about as long as one another.

        All but the last have a multiple of ``unit`` vectors.

        Raises
        ------
        Unfit
            If a row has no vector that is full, or there is no room for one.
        """
        whole = unit * vector
        if min(most, columns) < whole:
            rule = f"room for {whole} columns, and have as many"
            least = min(most, columns)
            raise Unfit(f"Piece of a row must have {rule}, not {least}", value=least, rule=rule)
        units = even_share(ceil_div(columns, whole), min(most, MAX_BOX) // whole)
        return cls(columns, vector, units * unit)

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


def half_writes(write: Walk) -> tuple[Walk, Walk]:
    """Walks that write each bf16 as the upper half of a word, and zeros as the lower one.

    A vector has one half of its columns, and zeros, and becomes a column of a block of bf16. In the
    rows of the second half, the lower half of a word comes behind the upper one.

    Parameters
    ----------
    write : Walk
        Over words: loops over parts of a group, rows, and vectors of columns.
    """
    halves, rows, chunks = write.loops
    loops = (
        loop(halves.base, 2 * halves.stride),
        loop(rows.base, 2),
        loop(chunks.base // 2, 4 * chunks.stride),
    )
    second = dataclasses.replace(write, loops=loops, element_bytes=bf16.bits // 8)
    return dataclasses.replace(second, offset=1), second
