"""Offsets that an index stream gives the steps of an engine."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from hw.arch.gather.index_program import IndexProgram
from hw.arch.words.pmu_word import IndexUse
from sw.prove.index_walk import IndexWalk

__all__ = ["IndexOffsets", "index_offsets"]


@dataclasses.dataclass(frozen=True)
class IndexOffsets:
    """Offsets of an engine's steps.

    Parameters
    ----------
    elements : (steps, lanes) array
        Elements by which an index moves each lane: 0 without one or out of range.
    outside : (steps, lanes) array
        Whether the lane's index is out of range.
    adds : (steps,) array
        Whether the step adds to what is stored.
    """

    elements: npt.NDArray[np.int64]
    outside: npt.NDArray[np.bool_]
    adds: npt.NDArray[np.bool_]


def index_offsets(
    indexed: IndexProgram, walk: IndexWalk, vectors: npt.NDArray[np.uint8], lanes: int
) -> IndexOffsets:
    """Offsets from the index vectors of all steps.

    Parameters
    ----------
    indexed : IndexProgram
    walk : IndexWalk
    vectors : (vectors, bytes) array
    lanes : int
        Elements of a vector.
    """
    words = np.ascontiguousarray(vectors).view(np.uint32).ravel().astype(np.int64)
    each = np.arange(lanes) if indexed.elements else np.zeros(lanes, np.int64)
    # A step without an index may stand behind the last one.
    takes = walk.takes[:, np.newaxis]
    numbers = np.where(takes, walk.numbers[:, np.newaxis] + each, -1)
    indices = np.append(words, 0)[numbers]
    outside = takes & (indices >= indexed.limit)
    elements = np.where(takes & ~outside, indices << indexed.shift, 0)
    return IndexOffsets(elements, outside, walk.takes & (indexed.use is IndexUse.SCATTER_ADD))
