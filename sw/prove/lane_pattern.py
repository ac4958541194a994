"""Sequence of units that lanes issue, with the periods inside a packet."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from sw.prove.pattern import Pattern

__all__ = ["LanePattern"]


@dataclasses.dataclass(frozen=True)
class LanePattern(Pattern):
    """Units of a lane program, by number; its columns are those of its runs of phases.

    Units of a packet are alike, from the first strip of joined phases on to the last unit: what
    else ends there, or comes first, is another action.

    Parameters
    ----------
    begins : array
        First unit of each run, and behind the last one the number of all units.
    strips : array
        Of each run, the units at its beginning that are unlike others.
    """

    begins: npt.NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(1, np.int64))
    strips: npt.NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self, unit: int) -> int:
        """Run to which a unit belongs; behind the last unit the number of runs."""
        return bisect_right(self.begins.data, unit) - 1

    def repeats(self, begin: int, period: int, most: int) -> int:
        if not period:
            return most
        first, last = self.run(begin), self.run(begin + period)
        if last == len(self.strips):
            return 0
        before = begin - int(self.begins[first])
        if first == last:
            if before < self.strips[first]:
                return 0
            end = int(self.begins[first + 1])
            return max(0, min(most, (end - 1 - period - begin) // period))
        if before != begin + period - self.begins[last]:
            return 0
        return super().repeats(first, last - first, most)
