"""What a part of the run is to do, place by place, and how long that repeats itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ENDLESS", "Pattern"]

#: Places that are compared at first, twice as many each time that they are alike.
_FIRST = 64


@dataclasses.dataclass(frozen=True)
class Pattern:
    """What a part is to do at each of its places; it has ended at the place behind the last.

    Parameters
    ----------
    length : int or None
        Places; None if there is no end to them and all are alike.
    columns : tuple of array
        All that matters of each place.
    """

    length: int | None
    columns: tuple[npt.NDArray[Any], ...] = ()

    def repeats(self, begin: int, period: int, most: int) -> int:
        """How often the places of one period come again behind it, the next place with them.

        Parameters
        ----------
        begin : int
            First place of the period.
        period : int
            Places.
        most : int
            Repeats that are of interest.
        """
        if self.length is None or not period:
            return most
        found = max(0, min(most, (self.length - 1 - period - begin) // period))
        for column in self.columns:
            if column.strides[0]:  # of one without strides all places are alike
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


ENDLESS = Pattern(None)
