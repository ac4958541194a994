"""Golden special functions in numpy, bit-identical to :mod:`hw.float.special_functions`.

Arguments and results are fp32. The result has a significand of ``width`` bits, 24 by default, and
the exponents and subnormals of such a format; NaN are canonical. Errors and special values are in
docs/numerics.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.arch.limits import FUNCTION_BITS, FUNCTION_WIDTH
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction
from hw.numeric.function_tables import (
    FULL_WIDTH,
    GUARD,
    LOG2_E_BITS,
    argument_bits,
    exp2_table,
    log2_e,
    log2_table,
    reciprocal_table,
    rsqrt_table,
    tanh_table,
)

__all__ = [
    "exp",
    "exp2",
    "log2",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "special_function",
    "tanh",
]

Array = npt.NDArray[Any]

_FRACTION = fp32.fraction_bits
_INFINITY = np.int64(fp32.infinity)
_NAN = np.int64(fp32.canonical_nan)
_ONE = np.int64(0x3F800000)


class _Decoded(NamedTuple):
    """Fields of fp32 values, subnormals normalised: (-1)^sign * significand * 2^(exponent - 23)."""

    sign: Array
    exponent: Array
    significand: Array
    zero: Array
    infinite: Array
    nan: Array


def _decode(x: npt.ArrayLike, width: int) -> _Decoded:
    FUNCTION_WIDTH.require("Function width", width)
    values = np.asarray(x)
    if values.dtype != fp32.dtype:
        raise BadInputError(f"Function argument must be of float32, not {values.dtype}")
    bits = values.view(np.uint32).astype(np.int64)
    field, fraction = bits >> _FRACTION & 0xFF, bits & ((1 << _FRACTION) - 1)
    # frexp finds the leading 1 of a subnormal.
    zeros = np.where(field == 0, _FRACTION + 1 - np.frexp(fraction)[1], 0)
    significand = np.where(field == 0, fraction << zeros, fraction | 1 << _FRACTION)
    exponent = np.maximum(field, 1) - 127 - zeros
    return _Decoded(
        sign=bits >> 31,
        exponent=exponent,
        significand=significand,
        zero=bits << 1 & 0xFFFFFFFF == 0,
        infinite=(field == 255) & (fraction == 0),
        nan=(field == 255) & (fraction != 0),
    )


def _round(value: Array, scale: int, exponent: Array, width: int) -> Array:
    """Bits of ``value * 2^(exponent - scale)``, value in [1, 2] times 2^scale or 0, no sign."""
    below = np.clip(-126 - exponent, 0, width + 1)
    drop = scale - (width - 1) + below
    half = np.int64(1) << (drop - 1)
    kept = (value + half - 1 + (value >> drop & 1)) >> drop
    bits = ((np.maximum(exponent, -126) + 126) << (width - 1)) + kept
    bounded: Array = np.minimum(bits << (FULL_WIDTH - width), _INFINITY)
    return bounded


def _normalise(value: Array, scale: int, exponent: Array) -> tuple[Array, Array]:
    """Value in [0.5, 2) times 2^scale as one in [1, 2) times 2^(scale + 1), and its exponent."""
    small = value < np.int64(1) << scale
    return np.where(small, value << 2, value << 1), exponent - small


def _finish(bits: Array) -> Array:
    return bits.astype(np.uint32).view(np.float32)


def _split(x: _Decoded, width: int, multiplied: bool, doubled: bool = False) -> Array:
    """Argument reduction: |x|, |x| log2(e) or twice that, rounded down, in fixed point.

    It has ``argument_bits`` fraction bits and 9 integer bits, all ones for a large argument.
    """
    fraction_bits = argument_bits(width)
    significand, scale = x.significand, _FRACTION
    if multiplied:
        significand, scale = significand * log2_e(width), scale + width + LOG2_E_BITS
    exponent = x.exponent + doubled
    right = scale - fraction_bits - exponent
    moved = significand >> np.clip(right, 0, 62) << np.clip(-right, 0, 8 - 1 + fraction_bits)
    return np.where(exponent >= 8, np.int64((1 << (9 + fraction_bits)) - 1), moved)


def _power(fixed: Array, width: int) -> tuple[Array, Array]:
    """2^fixed as a value in [1, 2) and an exponent."""
    fraction_bits = argument_bits(width)
    fraction = fixed & ((1 << fraction_bits) - 1)
    return exp2_table(width).compute(fraction), fixed >> fraction_bits


def _exponential(x: npt.ArrayLike, width: int, multiplied: bool) -> Array:
    d = _decode(x, width)
    fixed = _split(d, width, multiplied)
    value, exponent = _power(np.where(d.sign == 1, -fixed, fixed), width)
    bits = _round(value, width + GUARD, np.clip(exponent, -160, 128), width)
    bits = np.where(d.infinite, np.where(d.sign == 1, 0, _INFINITY), bits)
    return _finish(np.where(d.nan, _NAN, np.where(d.zero, _ONE, bits)))


def exp2(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """2^x.

    Parameters
    ----------
    x : array of float32
    width : int
        Significand bits of the result, 4 to 24.

    Raises
    ------
    BadInputError
        The argument is of another type, or the width out of its range.
    """
    return _exponential(x, width, multiplied=False)


def exp(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """e^x; parameters as of :func:`exp2`."""
    return _exponential(x, width, multiplied=True)


def _table_input(significand: Array, bits: int) -> Array:
    """Table input: the highest bits of a significand's fraction."""
    return (significand & ((1 << _FRACTION) - 1)) >> (_FRACTION - bits)


def reciprocal(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """1 / x; parameters as of :func:`exp2`."""
    d = _decode(x, width)
    table = reciprocal_table(width)
    value = table.compute(_table_input(d.significand, table.input_bits))
    value, exponent = _normalise(value, width + GUARD, -d.exponent)
    bits = _round(value, width + GUARD + 1, exponent, width)
    bits = np.where(d.zero, _INFINITY, np.where(d.infinite, 0, bits))
    return _finish(np.where(d.nan, _NAN, bits | d.sign << 31))


def rsqrt(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """1 / sqrt(x); parameters as of :func:`exp2`."""
    d = _decode(x, width)
    table = rsqrt_table(width)
    odd = d.exponent & 1
    bits_ = table.input_bits - 1
    value = table.compute(odd << bits_ | _table_input(d.significand, bits_))
    value, exponent = _normalise(value, width + GUARD, -(d.exponent >> 1))
    bits = _round(value, width + GUARD + 1, exponent, width)
    bits = np.where(d.infinite, 0, bits)
    bits = np.where(d.zero, _INFINITY | d.sign << 31, bits)
    return _finish(np.where(d.nan | (d.sign == 1) & ~d.zero, _NAN, bits))


def log2(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Logarithm of base 2; parameters as of :func:`exp2`."""
    d = _decode(x, width)
    table = log2_table(width)
    # 1.f is used unchanged up to 1.5, above it as its half and one binade up.
    fraction = d.significand & ((1 << _FRACTION) - 1)
    upper = fraction >> (_FRACTION - 1)
    distance = np.where(upper == 1, (1 << _FRACTION) - fraction, fraction << 1)
    product = distance * table.compute(fraction >> (_FRACTION - table.input_bits))
    scale = width + GUARD + FULL_WIDTH
    total = ((d.exponent + upper) << scale) + np.where(upper == 1, -product, product)
    negative, magnitude = total < 0, np.abs(total)
    # Normalise to 62 bits; no bit is lost.
    length = _bit_length(magnitude)
    value = magnitude << np.maximum(62 - length, 0)
    bits = _round(value, 61, length - 1 - scale, width)
    bits = np.where(total == 0, 0, bits | negative.astype(np.int64) << 31)
    bits = np.where(d.infinite, _INFINITY, bits)
    bits = np.where(d.nan | (d.sign == 1) & ~d.zero, _NAN, bits)
    return _finish(np.where(d.zero, _INFINITY | 1 << 31, bits))


def _bit_length(x: Array) -> Array:
    """Bits of integers below 2^62."""
    high = x >> 31
    upper, lower = np.frexp(high)[1], np.frexp(x & 0x7FFFFFFF)[1]
    length: Array = np.where(high > 0, upper + 31, lower).astype(np.int64)
    return length


def _decay(x: _Decoded, width: int, doubled: bool) -> tuple[Array, Array, Array, Array]:
    """e^-|x| or, doubled, e^-2|x|.

    Returns
    -------
    value, exponent
        The power: a value in [1, 2), and its exponent, at most 0.
    fixed
        The power with as many fraction bits as the value, rounded down.
    inverse
        1 / (1 + power), with as many fraction bits.
    """
    value, exponent = _power(-_split(x, width, multiplied=True, doubled=doubled), width)
    fixed = value >> np.minimum(-exponent, width + GUARD + 1)
    table = reciprocal_table(width, rounded=True)
    # A power of exactly 1 lies one beyond the table; it uses the last entry.
    argument = np.minimum(fixed >> (width + GUARD - table.input_bits), (1 << table.input_bits) - 1)
    return value, exponent, fixed, table.compute(argument)


def sigmoid(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """1 / (1 + e^-x); parameters as of :func:`exp2`."""
    d = _decode(x, width)
    scale = width + GUARD
    value, exponent, _, inverse = _decay(d, width, doubled=False)
    negative = d.sign == 1
    product = np.where(negative, value, np.int64(1) << scale) * inverse
    product, exponent = _normalise(product, 2 * scale, np.where(negative, exponent, 0))
    bits = _round(product, 2 * scale + 1, np.maximum(exponent, -160), width)
    bits = np.where(d.infinite, np.where(negative, 0, _ONE), bits)
    return _finish(np.where(d.nan, _NAN, bits))


def tanh(x: npt.ArrayLike, width: int = FULL_WIDTH) -> Array:
    """Hyperbolic tangent; parameters as of :func:`exp2`."""
    d = _decode(x, width)
    scale = width + GUARD
    # Below 1 the argument times a table of the ratio, above (1 - p) / (1 + p) with p = e^-2|x|.
    small = d.exponent < 0
    _, _, power, inverse = _decay(d, width, doubled=True)
    table = tanh_table(width)
    right = np.clip(_FRACTION - table.input_bits - d.exponent, 0, 62)
    left = np.clip(d.exponent - _FRACTION + table.input_bits, 0, table.input_bits)
    argument = d.significand >> right << left & ((1 << table.input_bits) - 1)
    ratio = table.compute(np.where(small, argument, 0))
    significand = d.significand << max(scale - _FRACTION, 0) >> max(_FRACTION - scale, 0)
    first = np.where(small, significand, (np.int64(1) << scale) - power)
    product = first * np.where(small, ratio, inverse)
    product, exponent = _normalise(product, 2 * scale, np.where(small, d.exponent, 0))
    bits = _round(product, 2 * scale + 1, exponent, width)
    bits = np.where(d.infinite, _ONE, np.where(d.zero, 0, bits)) | d.sign << 31
    return _finish(np.where(d.nan, _NAN, bits))


_CODED = {
    SpecialFunction.EXP2: exp2,
    SpecialFunction.EXP: exp,
    SpecialFunction.RECIPROCAL: reciprocal,
    SpecialFunction.RSQRT: rsqrt,
}


def special_function(function: SpecialFunction, x: npt.ArrayLike, function_bits: int) -> Array:
    """Result of a :class:`hw.float.special_function_unit.SpecialFunctionUnit`.

    Parameters
    ----------
    function : SpecialFunction
    x : array of float32
    function_bits : int
        Significand bits of the result, 12 to 24 (`limits.FUNCTION_BITS`).

    Raises
    ------
    BadInputError
        The argument is of another type, or the significand bits out of their range.
    """
    FUNCTION_BITS.require("Function bits", function_bits)
    return _CODED[function](x, function_bits)
