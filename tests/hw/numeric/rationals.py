"""Exact rationals rounded once: what a sum of products or a cast must be, in any float format.

Shares no code with the project and uses no floating-point arithmetic. Formats are given as
(exponent bits, fraction bits, whether it has infinities: None if not even NaN); every value goes
in and out as bits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

__all__ = ["BF16", "E2M1", "E4M3", "E5M2", "FP16", "FP32", "Spec", "convert", "sum_of_products"]

Spec = tuple[int, int, bool | None]

FP32: Spec = (8, 23, True)
BF16: Spec = (8, 7, True)
FP16: Spec = (5, 10, True)
E5M2: Spec = (5, 2, True)
E4M3: Spec = (4, 3, False)
E2M1: Spec = (2, 1, None)


def _codes(spec: Spec) -> tuple[int, int, int]:
    """Bits of the largest finite magnitude, of what follows it, and of what NaN becomes."""
    exponent_bits, fraction_bits, infinite = spec
    ones = (1 << (exponent_bits + fraction_bits)) - 1
    if infinite:
        infinity = ones & ~((1 << fraction_bits) - 1)
        return infinity - 1, infinity, infinity | 1 << (fraction_bits - 1)
    return (ones, ones + 1, ones) if infinite is None else (ones - 1, ones, ones)


@cache
def _decode(bits: int, spec: Spec) -> tuple[int, str, Fraction]:
    """Sign, kind (finite, infinite, nan) and magnitude."""
    exponent_bits, fraction_bits, _ = spec
    width = exponent_bits + fraction_bits
    sign, magnitude = bits >> width, bits & ((1 << width) - 1)
    largest, after, _ = _codes(spec)
    if magnitude > largest:
        return sign, "infinite" if spec[2] and magnitude == after else "nan", Fraction(0)
    field, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    significand = fraction + (1 << fraction_bits) if field else fraction
    return sign, "finite", significand * Fraction(2) ** (max(field, 1) - bias - fraction_bits)


def _round(magnitude: Fraction, spec: Spec) -> int:
    """Bits of the nearest value, ties to even, counting on without end beyond the largest."""
    exponent_bits, fraction_bits, _ = spec
    bias = (1 << (exponent_bits - 1)) - 1
    if not magnitude:
        return 0
    numerator, denominator = magnitude.numerator, magnitude.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    steps = magnitude / Fraction(2) ** (exponent - fraction_bits)
    whole, rest = divmod(steps.numerator, steps.denominator)
    twice = 2 * rest - steps.denominator
    whole += twice > 0 or (twice == 0 and whole & 1)
    return ((exponent + bias - 1) << fraction_bits) + whole


def _encode(sign: int, magnitude: Fraction, spec: Spec, saturate: bool) -> int:
    largest, after, _ = _codes(spec)
    bits = min(_round(magnitude, spec), largest if saturate else after)
    return sign << (spec[0] + spec[1]) | bits


def _factor(bits: int, spec: Spec) -> tuple[int, str, Fraction]:
    """Operand of a product, decoded: the NaN 0x7FFF of 16-bit floats is +0, as docs say."""
    return _decode(0 if bits == 0x7FFF and spec in (BF16, FP16) else bits, spec)


def sum_of_products(
    acc: int, products: list[tuple[int, int]], left: Spec, right: Spec, exponent: int = 0
) -> int:
    """fp32 bits of ``acc + 2^exponent * sum(a * w)``, rounded once."""
    nan = _codes(FP32)[2]
    terms = [_decode(acc, FP32)]
    for a, w in products:
        (sign_a, kind_a, value_a), (sign_w, kind_w, value_w) = _factor(a, left), _factor(w, right)
        kinds = {kind_a, kind_w}
        if "nan" in kinds or (
            "infinite" in kinds and _is_zero((kind_a, value_a), (kind_w, value_w))
        ):
            return nan
        kind = "infinite" if "infinite" in kinds else "finite"
        terms.append((sign_a ^ sign_w, kind, value_a * value_w * Fraction(2) ** exponent))
    if any(kind == "nan" for _, kind, _ in terms):
        return nan
    infinite = {sign for sign, kind, _ in terms if kind == "infinite"}
    if infinite:
        return nan if len(infinite) == 2 else infinite.pop() << 31 | _codes(FP32)[1]
    exact = sum((-value if sign else value for sign, _, value in terms), Fraction(0))
    if exact == 0:
        # -0 only of terms that are all -0; without NaN products are fixed-point and never -0.
        if left[2] is None:
            return 0
        return all(sign and value == 0 for sign, _, value in terms) << 31
    return _encode(int(exact < 0), abs(exact), FP32, False)


def _is_zero(*factors: tuple[str, Fraction]) -> bool:
    return any(kind == "finite" and value == 0 for kind, value in factors)


def convert(bits: int, source: Spec, target: Spec, saturate: bool = False) -> int:
    """Bits of a value in another format."""
    sign, kind, value = _decode(bits, source)
    largest, after, nan = _codes(target)
    if kind == "nan":
        return nan
    if kind == "infinite":
        return sign << (target[0] + target[1]) | (largest if saturate else after)
    return _encode(sign, value, target, saturate)
