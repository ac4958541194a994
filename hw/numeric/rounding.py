"""Correctly rounded sums of float64 values to fp32, in numpy.

A sum is kept exactly as a float64 and its rounding error (Knuth's two-sum). It is then rounded *to
odd*: to itself if float64 holds it, otherwise to the neighbour whose last bit is 1. That neighbour
is neither a value, nor half-way between two values, of a format at least two bits shorter. So
rounding it again gives the same as rounding the exact sum (Boldo and Melquiond, "Emulation of FMA
and correctly rounded sums", 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["add_to_odd", "round_sum", "two_sum"]

Array = npt.NDArray[Any]


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum of two float64 and its rounding error, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def add_to_odd(a: Array, b: Array) -> Array:
    """Sum of two finite float64, rounded to odd."""
    total, lost = two_sum(a, b)
    inexact = (lost != 0) & np.isfinite(total)
    even = (total.view(np.int64) & 1) == 0
    # The other neighbour of the exact sum has the other parity: a step in the bits, up if the
    # magnitude grows.
    step = np.where((lost > 0) == (total > 0), 1, -1)
    return (total.view(np.int64) + np.where(inexact & even, step, 0)).view(np.float64)


def round_sum(a: Array, b: Array, c: Array | None = None) -> Array:
    """Sum of two or three float64 arrays, rounded once to fp32, ties to even.

    Sums of values that are not finite follow IEEE 754; the bits of a NaN are numpy's.
    """
    a, b, *rest = np.broadcast_arrays(a, b, *([] if c is None else [c]))
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        plain = a + b
        if rest:
            plain = plain + rest[0]
            high, low = two_sum(b, rest[0])
            sum_, lost = two_sum(a, high)
            exact = add_to_odd(sum_, add_to_odd(lost, low))
        else:
            exact = add_to_odd(a, b)
        # Zeros, infinities and NaN come from the plain sum, with their signs.
        return np.where(np.isfinite(plain) & (exact != 0), exact, plain).astype(np.float32)
