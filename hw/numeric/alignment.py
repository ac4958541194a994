"""Alignment of a product and a sum at one exponent, in a fixed-point window.

The window's bits weigh, least significant first:

====== ==================================================================================
0..2   below the last place of an fp32 significand: what cancellation and rounding need
3..25  its fraction
26     its hidden bit
27     carry of the sum
28     sign of the sum
29..34 with int8 only: an int32 sum occupies bits 3..34
====== ==================================================================================

Three guard bits suffice. If the product (in [0.5, 2)) has the larger exponent, the sum moves at
least one place down; moved by three, it is below 0.25, so the difference stays above 0.25 and
loses two leading bits at most: 24 significant bits and one to round by end in bit 0. Moved less,
the sum still lies in the window whole. If the sum (in [1, 2)) has the larger exponent, the 16
bits of the product reach bit 0 only when moved by eleven.
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Value

from hw.numeric.formats import fp32, int32
from hw.numeric.product import PRODUCT_BITS, Product
from hw.numeric.wires import named

__all__ = ["EXPONENT_BITS", "FRACTION", "GUARD", "SHIFT_BITS", "SIGN", "Aligned", "align"]

#: Width of an fp32 fraction.
FRACTION = fp32.fraction_bits

#: Bits of the window below it.
GUARD = 3

#: Bit of the window that is the sign of a floating sum.
SIGN = GUARD + FRACTION + 2

#: Width of the exponent of a sum: biased as in fp32, but products exceed that.
EXPONENT_BITS = fp32.exponent_bits + 1

#: Stages of a shifter that can empty the window.
SHIFT_BITS = 5

#: Bit of the window that a product's last place has before it is shifted.
_PRODUCT = GUARD + FRACTION + 1 - PRODUCT_BITS


class Aligned(NamedTuple):
    """Two terms at one exponent.

    Members
    -------
    larger, smaller : 29 or 35 bits
        Terms in the window; ``smaller`` is inverted if it is to be subtracted.
    exponent : 9 bits
        Exponent, biased as in fp32, of the hidden bit's place; at least 1.
    subtract : 1 bit
        Whether the signs differ.
    sticky : 1 bit
        Whether ``smaller`` lost bits that were not zero.
    sign : 1 bit
        Sign of ``larger``; of the result, if special.
    special, nan : 1 bit
        Whether the result is infinite or NaN, NaN.
    """

    larger: Value
    smaller: Value
    exponent: Value
    subtract: Value
    sticky: Value
    sign: Value
    special: Value
    nan: Value


def align(m: Module, product: Product, addend: Value, *, integer: Value | None = None) -> Aligned:
    """Shift the smaller of a product and an fp32 to the exponent of the larger.

    Parameters
    ----------
    m : Module
        Takes the statements.
    product : Product
    addend : Value of 32 bits
    integer : Value of 1 bit
        Whether the terms are an int8 pair's product and an int32; never, by default.
    """
    fraction, field, addend_sign = addend[:FRACTION], addend[FRACTION:-1], addend[-1]
    addend_normal = named(m, "addend_normal", field.any())
    addend_special = named(m, "addend_special", field.all())
    # A subnormal has the exponent of the smallest normal and no hidden bit.
    addend_exponent = named(m, "addend_exponent", Cat(field[0] | ~addend_normal, field[1:]))

    # product exponent - addend exponent - 1, in 11 bits: the product's carries 512, which the
    # inversion of its top bit takes off again; the complement of the addend's is -(addend + 1).
    top = ~product.exponent[-1]
    signed_exponent = Cat(product.exponent[:-1], top, top)
    difference = (signed_exponent + Cat(~addend_exponent, Const(7, 3)))[:11]
    difference = named(m, "exponent_difference", difference)
    # On equality the addend counts as larger. So the smaller term moves by the complement of a
    # negative difference, and by a difference that is not negative and 1, which is wired in.
    addend_larger = difference[-1]
    distance = named(m, "distance", Mux(addend_larger, ~difference[:-1], difference[:-1]))
    far = named(m, "far", distance[SHIFT_BITS:].any())
    shift: Value = distance[:SHIFT_BITS] | far.replicate(SHIFT_BITS)
    addend_units: Value = Cat(addend_normal, Const(0, 1))
    extension: Value = Const(0, 1)
    if integer is not None:
        # The sum of int8 products takes the product's road to bit 3, the int32 the addend's.
        addend_larger = addend_larger | integer
        shift = Mux(integer, _PRODUCT - GUARD, shift)
        addend_units = Mux(integer, field[:2], addend_units)
        extension = Cat(field[2] & integer, addend[FRACTION + 3 :])
    addend_larger = named(m, "addend_larger", addend_larger)

    in_place = Cat(Const(0, _PRODUCT), product.significand, Const(0, 1))
    larger = Mux(addend_larger, Cat(Const(0, GUARD), fraction, addend_units), in_place)
    halved = Cat(Const(0, GUARD - 1), fraction, addend_normal, Const(0, 2))
    moved, lost = _shift_right(
        m, Mux(addend_larger, in_place, halved), named(m, "alignment", shift)
    )

    subtract = product.sign ^ addend_sign
    sticky = lost & ~product.zero
    if integer is not None:
        subtract, sticky = subtract & ~integer, sticky & ~integer
    subtract = named(m, "subtract", subtract)
    smaller: Value = Cat(moved, Const(0, 1))
    smaller = Mux(subtract, ~smaller, smaller)
    if integer is not None:
        above = GUARD + PRODUCT_BITS
        negative = (integer & product.sign).replicate(GUARD + int32.bits - above)
        smaller = Cat(smaller[:above], smaller[above:] | negative)

    addend_nan = addend_special & fraction.any()
    special = named(m, "special", product.special | addend_special)
    nan = product.nan | addend_nan | (product.special & addend_special & subtract)
    nan = named(m, "nan", nan)
    # An infinite product may have any exponent code, an infinite addend a smaller one.
    follow_addend = Mux(special, ~product.special, addend_larger)
    sign = Mux(follow_addend, addend_sign, product.sign) & ~nan
    exponent = Mux(addend_larger, addend_exponent, product.exponent[:EXPONENT_BITS])
    return Aligned(
        larger=named(m, "larger", Cat(larger, extension)),
        smaller=named(m, "smaller", smaller),
        exponent=named(m, "exponent", exponent),
        subtract=subtract,
        sticky=named(m, "sticky", sticky),
        sign=named(m, "sign", sign),
        special=special,
        nan=nan,
    )


def _shift_right(m: Module, value: Value, shift: Value) -> tuple[Value, Value]:
    """The value shifted, and whether a 1 fell off."""
    lost: Value = Const(0, 1)
    for stage in reversed(range(len(shift))):
        amount = 1 << stage
        value = named(m, f"before_shift_by_{amount}", value)
        lost = lost | (value[:amount].any() & shift[stage])
        value = Mux(shift[stage], value[amount:], value)
    return named(m, "moved", value), lost
