"""Exact multiplier of a cell: one product of 16-bit floats, or the sum of two int8 products."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.float.booth import booth_pair
from hw.float.recode import WIDE, Coding, Operand
from hw.numeric.formats import bf16, int8

__all__ = [
    "PAIR_BITS",
    "PRODUCT_BITS",
    "PRODUCT_EXPONENT_BITS",
    "Product",
    "is_nan_product",
    "multiply",
    "multiply_pair",
]

_BYTE = int8.bits

#: Width of the significand of a product of bf16.
PRODUCT_BITS = 2 * bf16.significand_bits

#: Width of the exponent of a product.
PRODUCT_EXPONENT_BITS = WIDE.exponent_bits + 1

#: Width of the sum of two products of int8.
PAIR_BITS = 2 * _BYTE + 1


class Product(NamedTuple):
    """Exact product of two floats, or exact sum of several products, not normalised.

    Members
    -------
    significand : 16 bits for bf16
        In [0.5, 2): all but the highest bit are a fraction.
    sign : 1 bit
    exponent : 10 bits
        Exponent of the significand, biased as in fp32, plus 512.
    zero, special, nan : 1 bit
        Whether the value is zero, infinite or NaN, NaN; they override the other fields.
    """

    significand: Value
    sign: Value
    exponent: Value
    zero: Value
    special: Value
    nan: Value


def _rows(a: Value, w: Value, signed: Value) -> list[Value]:
    """Partial products of two bytes, unsigned or signed.

    If ``signed`` is 1, the terms of negative weight are inverted (Baugh and Wooley), which makes
    the sum of the rows 2^15 - 2^8 more than the product.
    """
    low, top = Const(0, 1).replicate(_BYTE - 1), signed.replicate(_BYTE - 1)
    flips = [Cat(low, signed)] * (_BYTE - 1) + [Cat(top, Const(0, 1))]
    return [
        (Mux(bit, a, 0) ^ flip).shift_left(position)
        for position, (bit, flip) in enumerate(zip(w, flips, strict=True))
    ]


def _sum_of_products(a: Value, w: Value, a_high: Value, w_high: Value, signed: Value) -> Value:
    """``a * w + a_high * w_high``, all bytes, modulo 2^17.

    One tree for the rows of both products takes a quarter fewer gates than two ``*`` and a ``+``.
    """
    rows = _rows(a, w, signed) + _rows(a_high, w_high, signed)
    # Twice 2^8 - 2^15, modulo 2^17.
    total: Value = Cat(Const(0, _BYTE + 1), signed, Const(0, _BYTE - 2), signed)
    for row in rows:
        total = total + row
    return total[:PAIR_BITS]


def _hard_sum(a: Value, w: Value, a_high: Value, w_high: Value) -> Value:
    """``a * w + a_high * w_high``, all signed, as two multiplications for hard blocks."""
    low, high = a.as_signed() * w.as_signed(), a_high.as_signed() * w_high.as_signed()
    total: Value = low + high
    return total[:PAIR_BITS]


def multiply_pair(m: Module, a: Value, w: Value, *, hard: bool = False) -> Value:
    """Sum of the products of two pairs of int8.

    Combinational. The low bytes are one pair of factors, the high bytes the other.

    Parameters
    ----------
    m : Module
        Takes the statements.
    a, w : Value of 16 bits
    hard : bool
        Multiplications for the hard blocks of an FPGA, rather than one tree of gates.

    Returns
    -------
    Value of :data:`PAIR_BITS` bits, two's complement
    """
    total = Signal(PAIR_BITS, name="pair")
    if hard:
        m.d.comb += total.eq(_hard_sum(a[:_BYTE], w[:_BYTE], a[_BYTE:], w[_BYTE:]))
    else:
        m.d.comb += total.eq(booth_pair(m, a, w))
    return total


def is_nan_product(left: Operand, right: Operand) -> Value:
    """Whether a product is NaN: so is an operand, or one is infinite and the other zero."""
    nan = left.is_nan | right.is_nan
    return nan | (left.is_special & right.is_zero) | (right.is_special & left.is_zero)


def multiply(
    m: Module,
    a: Value,
    w: Value,
    *,
    integer: Value | None = None,
    coding: Coding = WIDE,
    hard: bool = False,
) -> Product:
    """Exact product of two operands.

    Combinational.

    Parameters
    ----------
    m : Module
        Takes the statements.
    a, w : Value of ``coding.bits`` bits
        Recoded floats, or two int8 in the low 16 bits and 0 above.
    integer : Value of 1 bit
        Whether the operands are int8; never, by default. The product is then ``significand``
        below ``sign``, two's complement of :data:`PAIR_BITS` bits, and the rest is meaningless.
    coding : Coding
        How the floats are recoded; that of bf16 with ``integer``.
    hard : bool
        With ``integer``: multiplications for the hard blocks of an FPGA, rather than one tree.
    """
    left, right = coding.split(a), coding.split(w)
    product = Product(
        significand=Signal(2 * (coding.fraction_bits + 1), name="product_significand"),
        sign=Signal(name="product_sign"),
        exponent=Signal(PRODUCT_EXPONENT_BITS, name="product_exponent"),
        zero=Signal(name="product_zero"),
        special=Signal(name="product_special"),
        nan=Signal(name="product_nan"),
    )
    total_exponent = left.exponent + right.exponent
    zero = left.is_zero | right.is_zero
    m.d.comb += [
        product.exponent.eq(coding.product_exponent(total_exponent, zero)),
        product.zero.eq(zero),
        product.special.eq(left.is_special | right.is_special),
        product.nan.eq(is_nan_product(left, right)),
    ]
    sign = left.sign ^ right.sign
    if integer is None:
        hidden = Const(1, 1)
        m.d.comb += [
            product.significand.eq(Cat(left.fraction, hidden) * Cat(right.fraction, hidden)),
            product.sign.eq(sign),
        ]
        return product
    # Both formats share the first multiplier: bit 7 is the hidden bit of a float and the sign of an
    # int8. The second multiplier gets zeros from bf16.
    low_a, low_w = (Cat(bits[: _BYTE - 1], bits[_BYTE - 1] | ~integer) for bits in (a, w))
    high_a, high_w = Mux(integer, a[_BYTE : 2 * _BYTE], 0), w[_BYTE : 2 * _BYTE]
    total = Signal(PAIR_BITS, name="product_total")
    if hard:
        # A float's byte is positive.
        low_a, low_w = (Cat(byte, byte[-1] & integer) for byte in (low_a, low_w))
        exact = _hard_sum(low_a, low_w, high_a, high_w)
    else:
        exact = _sum_of_products(low_a, low_w, high_a, high_w, integer)
    m.d.comb += [
        total.eq(exact),
        product.significand.eq(total[:PRODUCT_BITS]),
        product.sign.eq(Mux(integer, total[PRODUCT_BITS], sign)),
    ]
    return product
