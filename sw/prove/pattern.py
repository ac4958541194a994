"""Sequence of actions of an actor, with detection of its periods."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ENDLESS", "LanePattern", "Pattern"]

#: Actions compared at first; doubled after each comparison without a difference.
_FIRST = 64


@dataclasses.dataclass(frozen=True)
class Pattern:
    """The precomputed sequence of actions of one actor, indexed by step.

    Parameters
    ----------
    length : int or None
        Number of actions; None for an endless sequence of equal ones.
    columns : tuple of array
        The properties of each action, one array per property.
    """

    length: int | None
    columns: tuple[npt.NDArray[Any], ...] = ()

    def repeats(self, begin: int, period: int, most: int) -> int:
        """Number of repetitions of a period after it, such that the next action agrees too.

        Parameters
        ----------
        begin : int
            Index of the first action of the period.
        period : int
            Actions per period.
        most : int
            Repetitions after which the search may stop.
        """
        if self.length is None or not period:
            return most
        found = max(0, min(most, (self.length - 1 - period - begin) // period))
        for column in self.columns:
            if column.strides[0]:  # with a stride of 0 all entries are equal
                found = self._alike(column, begin, period, found)
        return found

    @staticmethod
    def _alike(column: npt.NDArray[Any], begin: int, period: int, most: int) -> int:
        at, end, size = begin, begin + most * period + 1, _FIRST
        while most and at < end:
            to = min(end, at + size)
            differ = column[at:to] != column[at + period : to + period]
            if differ.any():
                return max(0, (at + int(np.argmax(differ)) - 1 - begin) // period)
            at, size = to, 2 * size
        return most


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


ENDLESS = Pattern(None)
