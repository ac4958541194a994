"""Golden element functions that are compositions of those with hardware units, in numpy.

Arguments and results are fp32, bit-identical to the operations of :mod:`hw.numeric.elementwise`
and :mod:`hw.numeric.functions` applied one after the other. Roundings and errors are in
docs/numerics.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hw.numeric.elementwise import add, equal, multiply
from hw.numeric.functions import log2, reciprocal, rsqrt, sigmoid

__all__ = ["LN_2", "divide", "log", "silu", "sqrt", "subtract"]

Array = npt.NDArray[Any]

#: ln 2 rounded to fp32.
LN_2: Final = np.float32(0.6931471805599453)


def subtract(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a - b`` of float32, nearest even, NaN canonical; BadInputError for other types."""
    return add(a, np.negative(b))


def divide(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a / b`` as ``a * reciprocal(b)``; types as of :func:`subtract`."""
    return multiply(a, reciprocal(b))


def log(x: npt.ArrayLike) -> Array:
    """Natural logarithm as ``log2(x) * ln 2``; types as of :func:`subtract`."""
    return multiply(log2(x), LN_2)


def silu(x: npt.ArrayLike) -> Array:
    """``x * sigmoid(x)``; types as of :func:`subtract`."""
    return multiply(x, sigmoid(x))


def sqrt(x: npt.ArrayLike) -> Array:
    """Square root as ``x * rsqrt(x)``, zeros and infinity unchanged; types as of `subtract`."""
    values = np.asarray(x)
    product = multiply(values, rsqrt(values))
    # Zero times infinity is NaN, so zeros and infinities pass unchanged.
    kept = equal(values, np.float32(0)) | equal(values, np.float32(np.inf))
    return np.where(kept, values, product)
