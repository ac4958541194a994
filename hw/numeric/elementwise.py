"""Golden arithmetic of fp32 arrays and conversions from and to int32, bit-exact.

:mod:`hw.numeric.reference` has the casts between floats, :mod:`hw.numeric.functions` the
transcendental functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.numeric.formats import fp32, int32
from hw.numeric.rounding import round_sum

__all__ = [
    "add",
    "canonical",
    "equal",
    "fma",
    "from_int32",
    "less",
    "maximum",
    "minimum",
    "multiply",
    "round_to_integral",
    "to_int32",
]

Array = npt.NDArray[Any]


def _fp32(*values: npt.ArrayLike) -> list[Array]:
    arrays = [np.asarray(each) for each in values]
    for array in arrays:
        if array.dtype != fp32.dtype:
            raise BadInputError(f"Operand must be of float32, not {array.dtype}")
    return arrays


def canonical(x: Array) -> Array:
    """An array of float32 with the canonical NaN in the place of every NaN."""
    nan = np.isnan(x)
    return np.where(nan, fp32.from_bits(fp32.canonical_nan), x) if nan.any() else np.asarray(x)


def add(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a + b`` of float32, nearest even, NaN canonical; BadInputError for other types."""
    left, right = _fp32(a, b)
    with np.errstate(all="ignore"):
        return canonical(left + right)


def multiply(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a * b``, as :func:`add`."""
    left, right = _fp32(a, b)
    with np.errstate(all="ignore"):
        return canonical(left * right)


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> Array:
    """``a * b + c`` with one rounding, as :func:`add`."""
    left, right, addend = _fp32(a, b, c)
    with np.errstate(all="ignore"):
        # float64 holds the product exactly.
        product = left.astype(np.float64) * right.astype(np.float64)
        return canonical(round_sum(product, addend.astype(np.float64)))


def less(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a < b``: false if either is NaN; -0 and +0 are equal."""
    left, right = _fp32(a, b)
    with np.errstate(invalid="ignore"):
        return np.asarray(left < right)


def equal(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a = b``: false if either is NaN; -0 and +0 are equal."""
    left, right = _fp32(a, b)
    with np.errstate(invalid="ignore"):
        return np.asarray(left == right)


def _extreme(pick: Callable[[Array, Array], Array], zero_sign: Any, a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        result = pick(a, b)
    # numpy does not specify which of two zeros it returns.
    zeros = (a == 0) & (b == 0)
    signs = zero_sign(a.view(np.uint32), b.view(np.uint32)).view(np.float32)
    return canonical(np.where(zeros, signs, result))


def minimum(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """The smaller; NaN if either is, and -0 before +0 (IEEE 754-2019 minimum)."""
    left, right = np.broadcast_arrays(*_fp32(a, b))
    return _extreme(np.minimum, np.bitwise_or, left, right)


def maximum(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """The larger; NaN if either is, and +0 after -0 (IEEE 754-2019 maximum)."""
    left, right = np.broadcast_arrays(*_fp32(a, b))
    return _extreme(np.maximum, np.bitwise_and, left, right)


def round_to_integral(x: npt.ArrayLike) -> Array:
    """The nearest integer as float32, ties to even; zeros keep their signs."""
    (values,) = _fp32(x)
    with np.errstate(invalid="ignore"):
        return canonical(np.rint(values))


def to_int32(x: npt.ArrayLike) -> Array:
    """The nearest int32 to a float32, ties to even; it saturates, and NaN becomes 0."""
    (values,) = _fp32(x)
    with np.errstate(invalid="ignore"):
        wide = np.rint(np.where(np.isnan(values), np.float32(0), values).astype(np.float64))
    return np.clip(wide, -(2.0**31), 2.0**31 - 1).astype(np.int32)


def from_int32(x: npt.ArrayLike) -> Array:
    """An int32 rounded to float32, ties to even; BadInputError for other types."""
    values = np.asarray(x)
    if values.dtype != int32.dtype:
        raise BadInputError(f"Operand must be of int32, not {values.dtype}")
    return values.astype(np.float32)
