"""Golden element functions that are compositions of those with hardware units, in numpy.

Arguments and results are fp32, bit-identical to the operations of :mod:`hw.numeric.elementwise`
and :mod:`hw.numeric.functions` applied one after the other; `width` is the significand bits of the
latter's results. Roundings and errors are in docs/numerics.md. Each composition is declared once,
as a sequence of unit functions: golden computes it with arrays, a compiler records it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from hw.numeric.elementwise import add, equal, fma, from_int32, less, multiply
from hw.numeric.formats import fp32
from hw.numeric.function_tables import FULL_WIDTH
from hw.numeric.functions import exp, exp2, reciprocal, rsqrt

__all__ = [
    "GELU_CUBIC",
    "GELU_LINEAR",
    "LN_2",
    "SEQUENCES",
    "UnitFunctions",
    "bits",
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

_ZERO, _ONE, _INFINITY = np.float32(0), np.float32(1), np.float32(np.inf)
_SMALLEST_NORMAL = np.float32(2.0**-126)


class UnitFunctions(Protocol):
    """Functions of the hardware units that a sequence applies, to words of any kind.

    An operand is a word or a constant of float32.
    """

    def negate(self, a: Any) -> Any:
        """``-a``."""

    def add(self, a: Any, b: Any) -> Any:
        """``a + b``."""

    def multiply(self, a: Any, b: Any) -> Any:
        """``a * b``."""

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """``a * b + c`` with one rounding."""

    def bits(self, a: Any) -> Any:
        """The bits of a as an int32, converted."""

    def select_equal(self, a: Any, b: Any, c: Any, d: Any) -> Any:
        """C if ``a = b``, else d."""

    def select_less(self, a: Any, b: Any, c: Any, d: Any) -> Any:
        """C if ``a < b``, else d."""

    def exp(self, a: Any) -> Any:
        """``e^a``."""

    def exp2(self, a: Any) -> Any:
        """``2^a``."""

    def reciprocal(self, a: Any) -> Any:
        """``1 / a``."""

    def rsqrt(self, a: Any) -> Any:
        """``1 / sqrt(a)``."""


def _divide(units: UnitFunctions, a: Any, b: Any) -> Any:
    return units.multiply(a, units.reciprocal(b))


def _log(units: UnitFunctions, x: Any) -> Any:
    # The bits are a piecewise linear logarithm, exact for powers of two, at most 0.0861 below
    # (Mitchell 1962); `rough` is minus that. What remains of x is 1 + r, 0 <= r < 0.0615.
    rough = units.fma(units.bits(x), np.float32(-(2.0**-23)), np.float32(127))
    r = units.fma(units.exp2(rough), x, -_ONE)
    r = units.select_less(x, _SMALLEST_NORMAL, -_INFINITY, r)
    # log(1 + r) is about r (6 + r) / (6 + 4 r), by its Padé approximant.
    inverse = units.reciprocal(units.add(r, np.float32(1.5)))
    ratio = units.fma(inverse, np.float32(1.125), np.float32(0.25))
    result = units.fma(rough, -LN_2, units.multiply(r, ratio))
    # Bits with the sign are those of a negative int32.
    return units.select_less(np.float32(127.5), rough, np.float32(np.nan), result)


def _inverse_of_one_more(units: UnitFunctions, exponent: Any) -> Any:
    """``1 / (1 + e^exponent)``."""
    return units.reciprocal(units.add(units.exp(exponent), _ONE))


def _sigmoid(units: UnitFunctions, x: Any) -> Any:
    return _inverse_of_one_more(units, units.negate(x))


def _silu(units: UnitFunctions, x: Any) -> Any:
    return units.multiply(x, _sigmoid(units, x))


def _tanh(units: UnitFunctions, x: Any) -> Any:
    inverse = _inverse_of_one_more(units, units.multiply(x, np.float32(2)))
    return units.fma(inverse, np.float32(-2), _ONE)


def _gelu(units: UnitFunctions, x: Any) -> Any:
    factor = units.fma(units.multiply(x, x), GELU_CUBIC, GELU_LINEAR)
    return units.multiply(x, _inverse_of_one_more(units, units.multiply(x, factor)))


def _sqrt(units: UnitFunctions, x: Any) -> Any:
    # Zero times infinity is NaN, so zeros and infinities pass unchanged.
    product = units.multiply(x, units.rsqrt(x))
    return units.select_equal(x, _INFINITY, x, units.select_equal(x, _ZERO, x, product))


#: Sequences of unit functions, by the name of the element operation.
SEQUENCES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "div": _divide,
        "log": _log,
        "sigmoid": _sigmoid,
        "silu": _silu,
        "tanh": _tanh,
        "gelu": _gelu,
        "sqrt": _sqrt,
    }
)


class _Arrays:
    """Unit functions of arrays of float32, with the significand bits of the special functions."""

    negate = staticmethod(np.negative)
    add = staticmethod(add)
    multiply = staticmethod(multiply)
    fma = staticmethod(fma)

    def __init__(self, width: int) -> None:
        self._width = width

    def bits(self, a: Any) -> Array:
        return bits(a)

    def select_equal(self, a: Any, b: Any, c: Any, d: Any) -> Array:
        chosen: Array = np.where(equal(a, b), c, d)
        return chosen

    def select_less(self, a: Any, b: Any, c: Any, d: Any) -> Array:
        chosen: Array = np.where(less(a, b), c, d)
        return chosen

    def exp(self, a: Any) -> Array:
        return exp(a, self._width)

    def exp2(self, a: Any) -> Array:
        return exp2(a, self._width)

    def reciprocal(self, a: Any) -> Array:
        return reciprocal(a, self._width)

    def rsqrt(self, a: Any) -> Array:
        return rsqrt(a, self._width)


def _computed(name: str, width: int, *operands: npt.ArrayLike) -> Array:
    result: Array = SEQUENCES[name](_Arrays(width), *operands)
    return result


def subtract(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """``a - b`` of float32, nearest even, NaN canonical; BadInputError for other types."""
    return add(a, np.negative(b))


def divide(a: npt.ArrayLike, b: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """``a / b`` as ``a * reciprocal(b)``; types as of :func:`subtract`."""
    return _computed("div", width, a, b)


def bits(x: npt.ArrayLike) -> Array:
    """The bits of a float32 as an int32, converted to float32."""
    return from_int32(np.ascontiguousarray(x, fp32.dtype).view(np.int32))


def log(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Natural logarithm: of powers of two exact but for ln 2, -inf below 2^-126, NaN with a sign.

    Types as of :func:`subtract`.
    """
    return _computed("log", width, x)


def sigmoid(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """``reciprocal(1 + exp(-x))``; types as of :func:`subtract`."""
    return _computed("sigmoid", width, x)


def silu(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """``x * sigmoid(x)``; types as of :func:`subtract`."""
    return _computed("silu", width, x)


def tanh(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Hyperbolic tangent as ``1 - 2 * reciprocal(1 + exp(2 * x))``.

    The last two operations are an fma. Types as of :func:`subtract`.
    """
    return _computed("tanh", width, x)


def gelu(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Gaussian error linear unit in its tanh form, ``x * reciprocal(1 + exp(-2 * u))``.

    -2u is ``x * fma(x * x, GELU_CUBIC, GELU_LINEAR)``. Types as of :func:`subtract`.
    """
    return _computed("gelu", width, x)


def sqrt(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Square root as ``x * rsqrt(x)``, zeros and infinity unchanged; types as of `subtract`."""
    return _computed("sqrt", width, x)
