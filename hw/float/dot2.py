"""Exact dot product of two pairs of 8-bit floats, as one addend of a cell's partial sum.

The sum lies in a fixed-point frame at the larger product's exponent, long enough for every bit of
the smaller one: two products of e5m2 span 2^-32 to 2^32, so 65 bits, of e4m3 37. It is not
normalised. Cancellation leaves at least 2^-9 of the frame's top, or nothing, and products of more
than 26 bits get an alignment window that tolerates that (:mod:`hw.float.align`). So one rounding
follows, of the sum of all three terms.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Value

from hw.float.dot1 import Product, is_nan_product
from hw.float.recode import Coding, Operand
from hw.float.wires import named
from hw.numeric.formats import Format, fp32

__all__ = ["frame_bits", "multiply_float_pair"]


def _span(formats: tuple[Format, ...]) -> int:
    """Binades between the largest product of two values and the smallest."""
    lowest = min(1 - format_.bias - format_.fraction_bits for format_ in formats)
    highest = max((f.largest >> f.fraction_bits) - f.bias for f in formats)
    return 2 * (highest - lowest)


def frame_bits(formats: tuple[Format, ...]) -> int:
    """Width of the sum of two products of any of these formats.

    The highest bit is the carry of the sum; the next two are integer bits, since the product of
    two significands in [1, 2) lies in [1, 4). Products that cancel leave a sum that begins lower by
    at most their own bits; `hw.float.align` takes it if the width exceeds an fp32 fraction by two
    bits more.
    """
    cancelled = 2 * max(format_.significand_bits for format_ in formats)
    return max(_span(formats) + 3, fp32.fraction_bits + cancelled + 2)


def multiply_float_pair(m: Module, a: Value, w: Value, *, formats: tuple[Format, ...]) -> Product:
    """Exact sum of the products of two pairs of 8-bit floats.

    Combinational.

    Parameters
    ----------
    m : Module
        Takes the statements.
    a, w : Value of twice ``Coding.of(formats).bits`` bits
        Two recoded operands each, the even k low.
    formats : tuple of Format
        Formats of the operands: those of a pair may differ.
    """
    coding = Coding.of(formats)
    half = coding.bits
    pairs = [
        (coding.split(a[low : low + half]), coding.split(w[low : low + half])) for low in (0, half)
    ]
    products = [_product(m, index, *pair) for index, pair in enumerate(pairs)]
    (first, first_code, first_sign), (second, second_code, second_sign) = products
    bits, frame = len(first), frame_bits(formats)

    # The difference less 1: the smaller term shifts by the complement of a negative one, or by a
    # non-negative one plus 1, which is wired in.
    less_one = (first_code + Cat(~second_code, Const(1, 1)))[: len(first_code) + 1]
    less_one = named(m, "pair_difference", less_one)
    second_larger = named(m, "second_larger", less_one[-1])
    distance = Mux(second_larger, ~less_one[:-1], less_one[:-1])
    larger = named(m, "pair_larger", Mux(second_larger, second, first))
    smaller = Mux(second_larger, Cat(Const(0, 1), first), Cat(second, Const(0, 1)))
    code = Mux(second_larger, second_code, first_code)
    larger_sign = Mux(second_larger, second_sign, first_sign)

    # The smaller term in two's complement, sign-extended as it shifts down the frame.
    subtract = named(m, "pair_subtract", first_sign ^ second_sign)
    below = frame - 1 - bits
    signed = named(
        m, "pair_term", ((smaller ^ subtract.replicate(bits + 1)) + subtract)[: bits + 1]
    )
    negative = named(m, "pair_term_negative", subtract & smaller.any())
    moved: Value = Cat(Const(0, below - 1), signed, negative.replicate(frame - below - bits))
    for stage in reversed(range(_span(formats).bit_length())):
        amount = 1 << stage
        fill = negative.replicate(amount)
        moved = named(
            m, f"pair_moved_{amount}", Mux(distance[stage], Cat(moved[amount:], fill), moved)
        )
    top = named(m, "pair_top", (moved[below:] + larger)[: frame - below])

    # The term with the smaller exponent can be the larger one only if the exponents differ by at
    # most 1; then nothing lies more than one bit below the larger exponent's last.
    reversed_ = named(m, "pair_negative", subtract & top[-1])
    short = frame - below + 1
    magnitude: Value = Cat(moved[below - 1], top)
    magnitude = ((magnitude ^ reversed_.replicate(short)) + reversed_)[:short]
    total = named(m, "pair_total", Cat(moved[: below - 1], magnitude))
    zero = named(m, "pair_zero", ~total.any())

    specials = [left.is_special | right.is_special for left, right in pairs]
    nans = [is_nan_product(left, right) for left, right in pairs]
    special = specials[0] | specials[1]
    # Two negative zeros add up to -0; other zeros and exact cancellation to +0.
    sign = Mux(zero, first_sign & second_sign, larger_sign ^ reversed_)
    sign = Mux(special, Mux(specials[0], first_sign, second_sign), sign)
    # The carry bit raises the exponent by one, for a significand taken in [0.5, 2).
    exponent = (coding.product_exponent(code, zero)[:-1] + 1)[:9]
    return Product(
        significand=total,
        sign=named(m, "pair_sign", sign),
        exponent=named(m, "pair_exponent", Cat(exponent, ~zero)),
        zero=zero,
        special=named(m, "pair_special", special),
        nan=named(m, "pair_nan", nans[0] | nans[1] | (specials[0] & specials[1] & subtract)),
    )


def _product(m: Module, index: int, left: Operand, right: Operand) -> tuple[Value, Value, Value]:
    """Significand, sum of the exponent codes and sign; both numbers are 0 for a zero product."""
    one = Const(1, 1)
    zero = named(m, f"zero_{index}", left.is_zero | right.is_zero)
    significand = Cat(left.fraction, one) * Cat(right.fraction, one)
    code = left.exponent + right.exponent
    return (
        named(m, f"product_{index}", Mux(zero, 0, significand)),
        named(m, f"code_{index}", Mux(zero, 0, code)),
        named(m, f"sign_{index}", left.sign ^ right.sign),
    )
