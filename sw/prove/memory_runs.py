"""Bytes of memory that boxes access, as runs of adjacent ones."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hw.arch.descriptor import Descriptor

__all__ = ["MOST_RUNS", "runs_meet", "runs_of"]

Ints = npt.NDArray[np.int64]

#: Runs of one access beyond which they are not enumerated.
MOST_RUNS = 1 << 20


def runs_of(descriptor: Descriptor, base: int, points: Ints) -> tuple[Ints, Ints] | None:
    """First byte of each run that boxes access inside their tensor, and the byte behind it.

    Parameters
    ----------
    descriptor : Descriptor
    base : int
        Address of the tensor.
    points : (boxes, 5) array of int
        Coordinates of each box.

    Returns
    -------
    (array, array) or None
        None if there are more than `MOST_RUNS`.
    """
    count = math.prod(descriptor.box[1:])
    if len(points) * count > MOST_RUNS:
        return None
    lines = np.indices(descriptor.box[1:]).reshape(descriptor.rank - 1, count).T
    at = points[:, np.newaxis, 1 : descriptor.rank] + lines
    sizes = np.array(descriptor.dims[1:], np.int64)
    inside = ((at >= 0) & (at < sizes)).all(axis=2)
    begin = base + (at * np.array(descriptor.strides, np.int64)).sum(axis=2)
    size = descriptor.format.bytes
    ends = np.clip(points[:, :1] + [0, descriptor.box[0]], 0, descriptor.dims[0])
    first, last = (begin + ends[:, number, np.newaxis] * size for number in (0, 1))
    some = inside & (last > first)
    return first[some], last[some]


def runs_meet(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> bool:
    """Whether two accesses have a byte in common."""
    first, last = one
    order = np.argsort(first)
    # Runs of an access may meet one another, so of those that begin before, the furthest counts.
    first, last = first[order], np.maximum.accumulate(last[order])
    before = np.searchsorted(first, other[1])
    met = (before > 0) & (last[before - 1] > other[0]) if len(first) else np.zeros(1, np.bool_)
    return bool(met.any())
