"""Row numbers of gathers and scatters in the interpreters: their range, rows scattered by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from sw.ir import nodes as ir

__all__ = ["scatter_rows", "rows_named"]

Array = npt.NDArray[Any]


def scatter_rows(node: ir.Scatter, numbers: Array, pairs: Iterable[tuple[Array, Array]]) -> None:
    """Store rows in their order as the rows of a table that numbers name, or add them there.

    Parameters
    ----------
    node : Scatter
    numbers : array
        A number for each row.
    pairs : iterable of (array, array)
        Tables, which change, each with its rows.

    Raises
    ------
    BadInputError
        If a number is out of range.
    """
    flat = numbers.reshape(-1)
    for table, rows in pairs:
        _require_rows(node, flat, len(table))
        for number, row in zip(flat, rows, strict=True):
            table[number] = table[number] + row if node.op == "add" else row


def rows_named(
    node: ir.Gather | ir.Take, numbers: Array, count: int, limit: int
) -> tuple[Array, Array]:
    """Return the row that each row number names, 0 for those out of range, and which are not.

    Parameters
    ----------
    node : Gather or Take
    numbers : array
    count : int
        Numbers in the extent of the tile; those after it may be out of range.
    limit : int
        Rows of the table.

    Raises
    ------
    BadInputError
        If a number in the extent is out of range.
    """
    flat = numbers.reshape(-1)
    _require_rows(node, flat[:count], limit)
    inside = (flat >= 0) & (flat < limit)
    return np.where(inside, flat, 0), inside


def _require_rows(node: ir.Node, numbers: Array, limit: int) -> None:
    """Require row numbers of a node to name rows of its table.

    Parameters
    ----------
    node : Node
    numbers : array
    limit : int
        Rows of the table.

    Raises
    ------
    BadInputError
        At the first one that is out of range.
    """
    wrong = numbers[(numbers < 0) | (numbers >= limit)]
    if wrong.size:
        name = "scatter" if isinstance(node, ir.Scatter) else "gather"
        rule = f"0 to {limit - 1}, not {wrong[0]} ({node.span})"
        raise BadInputError(f"Row numbers of `{name}` must be {rule}")
