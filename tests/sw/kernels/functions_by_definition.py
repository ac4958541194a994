"""exp, 1 / x and 1 / sqrt(x) by their definition in docs/numerics.md, without code of the project.

Tables are of decimals of 40 digits, evaluation is in integers, rounding in float64, which holds
every table value exactly.
"""

import functools
from decimal import Decimal, localcontext

import numpy as np

__all__ = ["exp", "exp2", "reciprocal", "rsqrt"]

GUARD = 4
NAN = np.array(0x7FC00000, np.uint32).view(np.float32)


def row(function, start, step, scale):
    """Coefficients of one row, and its error at 1/4 and 3/4."""
    v0, v1, v2, v3, v4 = (function(start + step * n / 4) * scale for n in range(5))
    quadratic = 2 * (v0 - 2 * v2 + v4)
    linear = v4 - v0 - quadratic
    error = max(
        abs(v0 + at * (linear + at * quadratic) - exact)
        for at, exact in ((Decimal("0.25"), v1), (Decimal("0.75"), v3))
    )
    return tuple(int(each.to_integral_value()) for each in (v0, linear, quadratic)), error


@functools.cache
def table(name, width):
    """Rows and remainder bits of the shortest table that is near enough."""
    with localcontext(prec=40):
        functions = {
            "exp2": [lambda x: (x * Decimal(2).ln()).exp()],
            "reciprocal": [lambda x: 1 / (1 + x)],
            "rsqrt": [lambda x: 1 / (1 + x).sqrt(), lambda x: 1 / (2 + 2 * x).sqrt()],
        }[name]
        bits = width + 2 if name == "exp2" else min(23, width + 2)
        for index_bits in range(1, bits):
            step = 1 / Decimal(1 << index_bits)
            made = [
                row(each, step * n, step, Decimal(1 << width + GUARD))
                for each in functions
                for n in range(1 << index_bits)
            ]
            if max(error for _, error in made) <= Decimal("6.5"):
                return np.array([each for each, _ in made], np.int64), bits - index_bits
    raise AssertionError


def interpolated(name, width, argument):
    """Table's function of an integer argument, times 2^(width + 4)."""
    rows, m = table(name, width)
    c0, c1, c2 = (column[argument >> m] for column in rows.T)
    column = [int(each) for each in rows[:, 2]]
    size = max((each if each >= 0 else ~each).bit_length() for each in column)
    s = max(0, m - (size + (min(column) < 0)) - 1)
    r = argument & (1 << m) - 1
    return c0 + ((c1 + (c2 * (r >> s) >> m - s)) * r >> m)


def rounded(value, exponent, width):
    """value * 2^exponent, to nearest even, as a float of `width` significant bits."""
    value = value.astype(np.float64)
    top = np.frexp(value)[1] + exponent
    unit = np.maximum(top, -125) - width
    with np.errstate(over="ignore"):
        whole = np.rint(np.ldexp(value, exponent - unit))
        return np.ldexp(whole, unit).astype(np.float32)


def split(x):
    """Magnitude of a float as significand * 2^exponent, the significand of 24 bits."""
    fraction, exponent = np.frexp(np.abs(x).astype(np.float64))
    return np.ldexp(fraction, 24).astype(np.int64), exponent - 24


def exp(x, width):
    with localcontext(prec=40):
        log2_e = int((Decimal(1 << width + 10) / Decimal(2).ln()).to_integral_value())
    return power_of_two(x, width, log2_e, width + 10)


def exp2(x, width):
    return power_of_two(x, width, 1, 0)


def power_of_two(x, width, factor, bits):
    """2^(x * factor / 2^bits)."""
    finite = np.isfinite(x)
    significand, exponent = split(np.where(finite, x, np.float32(0)))
    # |x| times the factor with width + 2 fraction bits, rounded down; beyond 2^8 all overflows.
    right = bits - exponent - (width + 2)
    shifted = significand * factor << np.clip(-right, 0, 62) >> np.clip(right, 0, 62)
    power = np.where(np.abs(x) >= 256, (1 << width + 11) - 1, shifted)
    power = np.where(x < 0, -power, power)
    fraction, whole = power & (1 << width + 2) - 1, power >> width + 2
    y = rounded(interpolated("exp2", width, fraction), whole - (width + GUARD), width)
    y = np.where(np.isposinf(x), x, np.where(np.isneginf(x), np.float32(0), y))
    return np.where(np.isnan(x), NAN, y)


def fraction_index(significand, width):
    bits = min(23, width + 2)
    return (significand & (1 << 23) - 1) >> 23 - bits, bits


def reciprocal(x, width):
    usual = np.isfinite(x) & (x != 0)
    significand, exponent = split(np.where(usual, x, np.float32(1)))
    index, _ = fraction_index(significand, width)
    y = rounded(interpolated("reciprocal", width, index), -(exponent + 23) - (width + GUARD), width)
    y = np.where(x == 0, np.float32(np.inf), np.where(np.isinf(x), np.float32(0), y))
    return np.where(np.isnan(x), NAN, np.copysign(y, x))


def rsqrt(x, width):
    usual = np.isfinite(x) & (x > 0)
    significand, exponent = split(np.where(usual, x, np.float32(1)))
    index, bits = fraction_index(significand, width)
    exponent = exponent + 23
    value = interpolated("rsqrt", width, (exponent & 1) << bits | index)
    y = rounded(value, -(exponent >> 1) - (width + GUARD), width)
    y = np.where(np.isposinf(x), np.float32(0), y)
    y = np.where(x == 0, np.copysign(np.float32(np.inf), x), y)
    return np.where(np.isnan(x) | (x < 0), NAN, y)
