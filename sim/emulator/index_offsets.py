"""Offsets that an index stream gives the steps of an engine."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from hw.arch.gather.index_program import IndexProgram
from hw.arch.pmu_word import IndexUse
from sw.prove.index_walk import IndexWalk

__all__ = ["IndexOffsets", "index_offsets"]


@dataclasses.dataclass(frozen=True)
class IndexOffsets:
    """Offsets of an engine's steps.

    Parameters
    ----------
    elements : array
        Per step, the elements by which its index moves it: 0 without one or out of range.
    outside : array
        Per step, whether its index is out of range.
    adds : array
        Per step, whether it adds to what is stored.
    """

    elements: npt.NDArray[np.int64]
    outside: npt.NDArray[np.bool_]
    adds: npt.NDArray[np.bool_]


def index_offsets(
    indexed: IndexProgram, walk: IndexWalk, vectors: npt.NDArray[np.uint8]
) -> IndexOffsets:
    """Offsets from the index vectors of all steps."""
    words = np.ascontiguousarray(vectors).view(np.uint32).ravel().astype(np.int64)
    # A step without an index may stand behind the last one.
    indices = np.append(words, 0)[np.where(walk.takes, walk.numbers, -1)]
    outside = walk.takes & (indices >= indexed.limit)
    elements = np.where(walk.takes & ~outside, indices << indexed.shift, 0)
    adds = walk.takes & (indexed.use is IndexUse.SCATTER_ADD)
    return IndexOffsets(elements, outside, adds)
