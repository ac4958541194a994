"""Sequence of actions of an actor, with detection of its periods."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ENDLESS", "Pattern"]

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


ENDLESS = Pattern(None)
