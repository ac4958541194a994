"""Polynomial tables of the special function units, by result width."""

from __future__ import annotations

import decimal
import functools
from decimal import Decimal

from hw.numeric.formats import fp32
from hw.numeric.table import Table, fit

__all__ = [
    "FULL_WIDTH",
    "GUARD",
    "LOG2_E_BITS",
    "argument_bits",
    "exp2_table",
    "log2_e",
    "log2_table",
    "reciprocal_table",
    "rsqrt_table",
    "tanh_table",
]

#: Significand bits of an fp32.
FULL_WIDTH = fp32.significand_bits

#: Fraction bits of a table's output beyond the width of the function's result: a unit in the last
#: place of a result in [0.5, 1) is 16 of the table's units; a table is off by about 9 at most.
GUARD = 4

_ONE, _TWO = Decimal(1), Decimal(2)


def argument_bits(width: int) -> int:
    """Fraction bits of a power's exponent, and of other arguments that may be rounded."""
    return width + 2


#: Fraction bits of log2(e) beyond the width: |x| is below 128, and each bit of it doubles errors.
LOG2_E_BITS = 10


@functools.cache
def log2_e(width: int) -> int:
    """log2(e) with ``width + LOG2_E_BITS`` fraction bits."""
    with decimal.localcontext(decimal.Context(prec=40)):
        exact = (1 / _TWO.ln()) * (1 << (width + LOG2_E_BITS))
        return int(exact.to_integral_value())


def _significand_bits(width: int) -> int:
    """Bits of an operand's fraction that index a table."""
    return min(fp32.fraction_bits, argument_bits(width))


@functools.cache
def exp2_table(width: int) -> Table:
    """2^x for x in [0, 1)."""
    pieces = [lambda x: (x * _TWO.ln()).exp()]
    return fit(pieces, input_bits=argument_bits(width), fraction_bits=width + GUARD)


@functools.cache
def reciprocal_table(width: int, *, rounded: bool = False) -> Table:
    """1 / (1 + x) for x in [0, 1): x a fraction or, ``rounded``, a rounded intermediate result."""
    bits = argument_bits(width) if rounded else _significand_bits(width)
    return fit([lambda x: 1 / (1 + x)], input_bits=bits, fraction_bits=width + GUARD)


@functools.cache
def rsqrt_table(width: int) -> Table:
    """1 / sqrt(1 + x), then 1 / sqrt(2 + 2 x), for x in [0, 1)."""
    pieces = [lambda x: 1 / (1 + x).sqrt(), lambda x: 1 / (2 + 2 * x).sqrt()]
    return fit(pieces, input_bits=_significand_bits(width) + 1, fraction_bits=width + GUARD)


def _log2_ratio(f: Decimal) -> Decimal:
    """log2(1 + f) / f."""
    return (_ONE if f == 0 else (1 + f).ln() / f) / _TWO.ln()


@functools.cache
def log2_table(width: int) -> Table:
    """log2(1 + f) / f, with f = x for x < 0.5 and (x - 1) / 2 above, for x in [0, 1)."""
    pieces = [lambda x: _log2_ratio(x / 2), lambda x: _log2_ratio(x / 4 - _ONE / 4)]
    return fit(pieces, input_bits=_significand_bits(width), fraction_bits=width + GUARD)


def _tanh_ratio(x: Decimal) -> Decimal:
    """tanh(x) / x."""
    if x == 0:
        return _ONE
    power = (2 * x).exp()
    return (power - 1) / (power + 1) / x


@functools.cache
def tanh_table(width: int) -> Table:
    """tanh(x) / x for x in [0, 1)."""
    return fit([_tanh_ratio], input_bits=argument_bits(width), fraction_bits=width + GUARD)
