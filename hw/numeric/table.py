"""Piecewise quadratic polynomials in integers: coefficient fit and golden evaluation."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError

__all__ = ["Table", "column_shape", "fit"]

Array = npt.NDArray[Any]
Function = Callable[[Decimal], Decimal]

#: Decimal digits of the fit. That arithmetic rounds correctly, so every machine gives one result.
_DIGITS = 40

#: Tolerance of a fit in units of the table output's last place: 0.4 units in the last place of a
#: function's result in [0.5, 1).
_TOLERANCE = Decimal("6.5")


@dataclass(frozen=True)
class Table:
    """Table of a function of an unsigned fixed-point number, in segments of equal length.

    With r the m input bits below the index, a segment evaluates to
    ``c0 + ((c1 + (c2 * (r >> s) >> m - s)) * r >> m)``, where shifts round down. s leaves one bit
    of r more than c2 has; the others would change the slope by less than half.

    Parameters
    ----------
    index_bits, remainder_bits : int
        Split of the input; the index is the higher part.
    fraction_bits : int
        Fraction bits of the result.
    c0, c1, c2 : tuple of int
        Coefficients of each segment.
    """

    index_bits: int
    remainder_bits: int
    fraction_bits: int
    c0: tuple[int, ...]
    c1: tuple[int, ...]
    c2: tuple[int, ...]

    @property
    def input_bits(self) -> int:
        """Width of the input."""
        return self.index_bits + self.remainder_bits

    @property
    def dropped_bits(self) -> int:
        """Low bits of the remainder that the quadratic term ignores."""
        return max(0, self.remainder_bits - column_shape(self.c2)[0] - 1)

    def compute(self, x: Array) -> Array:
        """Result for each int64 input, times 2^fraction_bits."""
        c0, c1, c2 = (np.array(column, np.int64) for column in (self.c0, self.c1, self.c2))
        index, r = x >> self.remainder_bits, x & ((1 << self.remainder_bits) - 1)
        low = self.dropped_bits
        slope = c1[index] + (c2[index] * (r >> low) >> self.remainder_bits - low)
        answer: Array = c0[index] + (slope * r >> self.remainder_bits)
        return answer

    def slopes(self) -> list[int]:
        """Bounds on the magnitudes of the slopes."""
        return [abs(a) + abs(b) for a, b in zip(self.c1, self.c2, strict=True)]


def column_shape(column: Sequence[int]) -> tuple[int, bool]:
    """Least width that holds all values of a column, and whether they are signed."""
    signed = min(column) < 0
    bits = max((~value if value < 0 else value).bit_length() for value in column)
    return bits + signed, signed


def fit(pieces: Sequence[Function], *, input_bits: int, fraction_bits: int) -> Table:
    """Smallest table, within a tolerance, of functions on [0, 1] placed one after another.

    Each segment meets its function at both ends and in the middle, so a value that is exact at the
    end of a segment, like 2^0, stays exact.

    Parameters
    ----------
    pieces : sequence of functions
        As many as a power of two; the highest bits of the input select one.
    input_bits, fraction_bits : int
        Widths of the input and of the result's fraction.
    """
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        for per_piece in range(1, input_bits):
            table, worst = _fit(pieces, input_bits, fraction_bits, per_piece)
            if worst <= _TOLERANCE:
                return table
    raise BadInputError(f"Table must be shorter than its {input_bits}-bit input")


def _fit(
    pieces: Sequence[Function], input_bits: int, fraction_bits: int, per_piece: int
) -> tuple[Table, Decimal]:
    """Table of so many index bits per piece, and the largest error of its exact polynomials."""
    segments = 1 << per_piece
    index_bits = (len(pieces) - 1).bit_length() + per_piece
    step = Decimal(1) / segments
    rows, worst = [], Decimal(0)
    for piece in pieces:
        for segment in range(segments):
            start = segment * step
            # In units of the result and of the segment's length.
            values = [
                piece(start + step * quarter / 4) * (1 << fraction_bits) for quarter in range(5)
            ]
            second = 2 * (values[0] - 2 * values[2] + values[4])
            first = values[4] - values[0] - second
            for quarter in (1, 3):
                position = Decimal(quarter) / 4
                guess = values[0] + (first + second * position) * position
                worst = max(worst, abs(guess - values[quarter]))
            rows.append([int(each.to_integral_value()) for each in (values[0], first, second)])
    c0, c1, c2 = (tuple(column) for column in zip(*rows, strict=True))
    table = Table(index_bits, input_bits - index_bits, fraction_bits, c0, c1, c2)
    return table, worst
