"""Sizes that are chosen for two products with a softmax between them, and what they come to."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from hw.arch.loops import BoxLoop, LoopProgram

__all__ = ["BlockCount", "SoftmaxSizes"]


@dataclasses.dataclass(frozen=True)
class BlockCount:
    """Blocks of keys that a group of queries meets: ``(base + slope * group) >> shift``."""

    base: int
    slope: int = 0
    shift: int = 0

    def of(self, groups: int) -> np.ndarray:
        """Count of each group."""
        return self.base + self.slope * np.arange(groups) >> self.shift

    def loop(self, outer: int) -> LoopProgram:
        """Loop of an engine over blocks, inside the loop over groups."""
        return LoopProgram(self.base, slope=self.slope, outer=outer, shift=self.shift)

    def boxes(self, outer: int, dimension: int, step: int) -> BoxLoop:
        """Loop over the boxes of blocks, inside the loop over groups."""
        return BoxLoop(self.base, dimension, step, slope=self.slope, outer=outer, shift=self.shift)


@dataclasses.dataclass(frozen=True)
class SoftmaxSizes:
    """Choices for a `SoftmaxProduct` on a chip.

    Parameters
    ----------
    pairs : int
        Scores units, each with a values unit for each part of the columns of values.
    column_parts : int
        Parts of the columns of values.
    wide : int
        Vectors of a row of values in a part.
    queries : int
        Queries of a group: those in the columns of all pairs.
    groups : int
    block : int
        Keys of a block, a multiple of R.
    blocks : int
        Blocks of all keys that any query sees.
    count : BlockCount
        Blocks that each group meets.
    kept : bool
        Whether keys and values stay on chip for all groups.
    key_buffers, value_buffers : int
        Buffers of keys, each of some tiles of a row; of values, each of some keys of a block.
    parts : int
        AGCUs that load the keys, and the values, each a part of a block.
    query_parts : int
        Buffers of queries, each for some of the pairs.
    cycles : float
        Cycles that the kernel takes, as far as its rates tell.
    start : float
        Those of them until the first block is multiplied, while an iteration before ends.
    """

    pairs: int
    column_parts: int
    wide: int
    queries: int
    groups: int
    block: int
    blocks: int
    count: BlockCount
    kept: bool
    key_buffers: int
    value_buffers: int
    parts: int
    query_parts: int
    cycles: float
    start: float

    @property
    def text(self) -> str:
        """The choices, as a line of text."""
        counts = self.count.of(self.groups)
        met = f"{counts[0]} to {counts[-1]}" if self.count.slope else f"{self.blocks}"
        units = "pairs" if self.column_parts == 1 else f"sets of {1 + self.column_parts}"
        where = "kept on chip" if self.kept else "loaded for each group"
        return (
            f"{self.pairs} {units} of PCUs, {self.groups} groups of {self.queries} queries, "
            f"{met} blocks of {self.block} keys each, {where}"
        )

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """First pair of each buffer of queries, and number of its pairs."""
        starts = [part * self.pairs // self.query_parts for part in range(self.query_parts + 1)]
        return tuple((first, end - first) for first, end in itertools.pairwise(starts))
