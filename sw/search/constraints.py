"""Constraints on the plan of a product."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

__all__ = ["Constraints"]


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Constraints on a plan: what the schedule requires, and the program's slots for results.

    Parameters
    ----------
    row_tile, column_tile, sum_tile : int or None
        Block sizes.
    row_par, col_par : int or None
        Units over which the schedule splits rows and columns.
    slots : mapping of str to int
        Tiles in the buffers ``a``, ``b``, ``c``.
    """

    row_tile: int | None = None
    column_tile: int | None = None
    sum_tile: int | None = None
    row_par: int | None = None
    col_par: int | None = None
    slots: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def turn(self) -> Constraints:
        """Constraints on the product of the transposes, whose loops are not the program's."""
        keys = {"a": "b", "b": "a", "c": "c"}
        return Constraints(
            row_tile=self.column_tile,
            column_tile=self.row_tile,
            sum_tile=self.sum_tile,
            row_par=self.col_par,
            col_par=self.row_par,
            slots={keys[name]: count for name, count in self.slots.items()},
        )
