"""Golden element functions that are compositions of those with hardware units, in numpy.

Arguments and results are fp32, bit-identical to the operations of :mod:`hw.numeric.elementwise`
and :mod:`hw.numeric.functions` applied one after the other; `width` is the significand bits of the
latter's results. Roundings and errors are in docs/numerics.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hw.numeric.elementwise import add, equal, fma, multiply
from hw.numeric.function_tables import FULL_WIDTH
from hw.numeric.functions import exp, log2, reciprocal, rsqrt

__all__ = [
    "GELU_CUBIC",
    "GELU_LINEAR",
    "LN_2",
    "divide",
    "gelu",
    "log",
    "sigmoid",
    "silu",
    "sqrt",
    "subtract",
    "tanh",
]

Array = npt.NDArray[Any]

#: ln 2 rounded to fp32.
LN_2: Final = np.float32(0.6931471805599453)
#: -2 sqrt(2 / pi), and that times 0.044715, in fp32: x and x^3 in the exponent of gelu.
GELU_LINEAR: Final = np.float32(-1.5957691216057308)
GELU_CUBIC: Final = np.float32(-0.07135481627159628)

_ONE: Final = np.float32(1)


def subtract(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a - b`` of float32, nearest even, NaN canonical; BadInputError for other types."""
    return add(a, np.negative(b))


def divide(a: npt.ArrayLike, b: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """``a / b`` as ``a * reciprocal(b)``; types as of :func:`subtract`."""
    return multiply(a, reciprocal(b, width))


def log(x: npt.ArrayLike) -> Array:
    """Natural logarithm as ``log2(x) * ln 2``; types as of :func:`subtract`."""
    return multiply(log2(x), LN_2)


def _inverse_of_one_more(exponent: npt.ArrayLike, width: int) -> Array:
    """``1 / (1 + e^exponent)``."""
    return reciprocal(add(_ONE, exp(exponent, width)), width)


def sigmoid(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """``reciprocal(1 + exp(-x))``; types as of :func:`subtract`."""
    return _inverse_of_one_more(np.negative(x), width)


def silu(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """``x * sigmoid(x)``; types as of :func:`subtract`."""
    return multiply(x, sigmoid(x, width))


def tanh(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Hyperbolic tangent as ``1 - 2 * reciprocal(1 + exp(2 * x))``.

    The last two operations are an fma. Types as of :func:`subtract`.
    """
    return fma(np.float32(-2), _inverse_of_one_more(multiply(np.float32(2), x), width), _ONE)


def gelu(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Gaussian error linear unit in its tanh form, ``x * reciprocal(1 + exp(-2 * u))``.

    -2u is ``x * fma(x * x, GELU_CUBIC, GELU_LINEAR)``. Types as of :func:`subtract`.
    """
    exponent = multiply(x, fma(multiply(x, x), GELU_CUBIC, GELU_LINEAR))
    return multiply(x, _inverse_of_one_more(exponent, width))


def sqrt(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Square root as ``x * rsqrt(x)``, zeros and infinity unchanged; types as of `subtract`."""
    values = np.asarray(x)
    product = multiply(values, rsqrt(values, width))
    # Zero times infinity is NaN, so zeros and infinities pass unchanged.
    kept = equal(values, np.float32(0)) | equal(values, np.float32(np.inf))
    return np.where(kept, values, product)
