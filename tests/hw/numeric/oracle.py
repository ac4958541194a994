"""Two scalar oracles of a bf16 multiply-accumulate that share no code with one another.

Both take and give bits and use no floating-point arithmetic. An operand 0x7FFF, the NaN of fills,
is +0.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

__all__ = ["mac_by_integers", "mac_by_rationals"]

_NAN, _INF = 0x7FC00000, 0x7F800000
_FILL = 0x7FFF


@cache
def _rational(bits: int) -> Fraction:
    """Exact value of finite fp32 bits."""
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    significand = fraction + (1 << 23) if field else fraction
    magnitude = significand * Fraction(2) ** (max(field, 1) - 150)
    return -magnitude if bits >> 31 else magnitude


def _special(acc: int, a: int, w: int) -> int | None:
    """Answer if an operand (all fp32 bits) is infinite or NaN, from the table of IEEE 754."""
    magnitudes = [bits & 0x7FFFFFFF for bits in (acc, a, w)]
    if max(magnitudes) < _INF:
        return None
    sign = (a ^ w) & 0x80000000
    product_is_infinite = _INF in magnitudes[1:]
    if max(magnitudes) > _INF or (product_is_infinite and 0 in magnitudes[1:]):
        return _NAN
    if product_is_infinite:
        return _NAN if magnitudes[0] == _INF and acc >> 31 != sign >> 31 else sign | _INF
    return acc


def mac_by_rationals(acc: int, a: int, w: int) -> int:
    """Sum as a fraction, then the nearest of all fp32 values, found by bisection on the bits."""
    a, w = (0 if bits == _FILL else bits << 16 for bits in (a, w))
    special = _special(acc, a, w)
    if special is not None:
        return special
    exact = _rational(acc) + _rational(a) * _rational(w)
    if exact == 0:
        # Zero is negative only if both terms are.
        return acc & (a ^ w) & 0x80000000 if not (acc & 0x7FFFFFFF) else 0
    sign = 0x80000000 if exact < 0 else 0
    exact = abs(exact)
    # fp32 magnitudes order as their bits; the bits of infinity stand for 2^128 here, the value
    # whose midpoint with the largest finite one is IEEE 754's threshold of overflow.
    low, high = 0, _INF
    if exact >= Fraction(2) ** 128:
        return sign | _INF
    while high - low > 1:
        middle = (low + high) // 2
        if _rational(middle) <= exact:
            low = middle
        else:
            high = middle
    twice = 2 * exact - _rational(low) - _rational(high)
    up = twice > 0 or (twice == 0 and low & 1)
    return sign | (high if up else low)


def _fixed(bits: int) -> int:
    """Finite fp32 bits as an integer count of 2^-149."""
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    magnitude = (fraction | 1 << 23) << (field - 1) if field else fraction
    return -magnitude if bits >> 31 else magnitude


def mac_by_integers(acc: int, a: int, w: int) -> int:
    """Sum as one long integer, in units of 2^-298, rounded by shifting."""
    a, w = (0 if bits == _FILL else bits << 16 for bits in (a, w))
    special = _special(acc, a, w)
    if special is not None:
        return special
    product = _fixed(a) * _fixed(w)
    total = (_fixed(acc) << 149) + product
    if total == 0:
        negative = acc >> 31 and (a ^ w) >> 31
        return (negative << 31) if not (acc & 0x7FFFFFFF) else 0
    sign, total = (1, -total) if total < 0 else (0, total)
    # Bits to drop: down to 24 significant ones, but never below 2^-149.
    drop = max(total.bit_length() - 24, 149)
    kept, rest, half = total >> drop, total & ((1 << drop) - 1), 1 << (drop - 1)
    kept += rest > half or (rest == half and kept & 1)
    # A kept 2^23 adds 1 to the exponent field, and so does a carry out of the rounding.
    return sign << 31 | min(((drop - 149) << 23) + kept, _INF)
