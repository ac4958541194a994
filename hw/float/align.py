"""First half of a floating-point adder: alignment of a product and a partial sum.

Both terms are placed in one fixed-point window at one exponent. Its bits weigh, least significant
first, with g guard bits (3 for products of bf16):

========== ==============================================================================
0..g-1     below the last place of an fp32 significand: for cancellation and rounding
g..g+22    its fraction
g+23       its hidden bit
g+24       carry of the sum
g+25       sign of the sum
29..34     with int8 only (and g = 3): an int32 sum occupies bits 3..34
========== ==============================================================================

Three guard bits suffice for bf16. If the product (in [0.5, 2)) has the larger exponent, the sum
shifts right by at least one. Shifted by three, it is below 0.25, so the difference stays above
0.25 and loses two leading bits at most: 24 significant bits and a rounding bit end in bit 0.
Shifted less, the whole sum still lies in the window. If the sum (in [1, 2)) has the larger
exponent, the 16 bits of the product reach bit 0 only when shifted by eleven, the 22 of a product
of fp16 when shifted by five.

A longer product takes g = its bits - 23. It then loses bits only when shifted by two or more, so
the sum it is subtracted from stays above 0.5, and an fp32 shifted by less than g lies whole in the
window. Such a product may also begin lower than at 0.5: down to 2^(2-g) the same holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Value

from hw.float.dot1 import Product
from hw.float.sticky_shift import shift_right
from hw.float.wires import named
from hw.numeric.formats import fp32, int32

__all__ = ["EXPONENT_BITS", "FRACTION", "NARROW", "Aligned", "Window", "align"]

#: Width of an fp32 fraction.
FRACTION = fp32.fraction_bits

#: Width of the exponent of a sum: biased as in fp32, but products exceed that.
EXPONENT_BITS = fp32.exponent_bits + 1


@dataclass(frozen=True)
class Window:
    """Size of the alignment window.

    Parameters
    ----------
    guard : int
        Bits below the last place of an fp32 significand, at least 3.
    """

    guard: int

    @classmethod
    def of(cls, product_bits: int) -> Window:
        """Smallest window for products of so many bits."""
        return cls(max(3, product_bits - FRACTION))

    @property
    def sign(self) -> int:
        """Bit that is the sign of a floating-point sum."""
        return self.guard + FRACTION + 2

    @property
    def shift_bits(self) -> int:
        """Stages of a barrel shifter that can empty the window."""
        return self.sign.bit_length()


#: Window of products of up to 26 bits.
NARROW = Window(3)


class Aligned(NamedTuple):
    """Product and partial sum, aligned to one exponent.

    Members
    -------
    larger, smaller : 29 or 35 bits, or the window's
        Terms in the window; ``smaller`` is inverted for subtraction.
    exponent : 9 bits
        Exponent of the hidden bit's position, biased as in fp32; at least 1.
    subtract : 1 bit
        Whether the signs differ.
    sticky : 1 bit
        Whether ``smaller`` lost bits that were not zero.
    sign : 1 bit
        Sign of ``larger``; of the result, if special.
    special, nan : 1 bit
        Whether the result is infinite or NaN; whether it is NaN.
    """

    larger: Value
    smaller: Value
    exponent: Value
    subtract: Value
    sticky: Value
    sign: Value
    special: Value
    nan: Value


def align(
    m: Module,
    product: Product,
    addend: Value,
    *,
    integer: Value | None = None,
    window: Window = NARROW,
) -> Aligned:
    """Alignment shift of the smaller of a product and an fp32 to the exponent of the larger.

    Parameters
    ----------
    m : Module
        Takes the statements.
    product : Product
    addend : Value of 32 bits
    integer : Value of 1 bit
        Whether the terms are an int8 pair's product sum and an int32; never, by default.
    window : Window
        At least as large as the product's bits need.
    """
    guard, product_bits = window.guard, len(product.significand)
    # Window bit of the product's last place before the shift.
    place = guard + FRACTION + 1 - product_bits
    fraction, field, addend_sign = addend[:FRACTION], addend[FRACTION:-1], addend[-1]
    addend_normal = named(m, "addend_normal", field.any())
    addend_special = named(m, "addend_special", field.all())
    # A subnormal has the exponent of the smallest normal and no hidden bit.
    addend_exponent = named(m, "addend_exponent", Cat(field[0] | ~addend_normal, field[1:]))

    addend_larger, shift = _compare(m, product, addend_exponent, window)
    addend_units: Value = Cat(addend_normal, Const(0, 1))
    extension: Value = Const(0, 1)
    if integer is not None:
        # int8: the product sum shifts to bit 3 as the smaller term, the int32 is the larger one.
        addend_larger = addend_larger | integer
        shift = Mux(integer, place - guard, shift)
        addend_units = Mux(integer, field[:2], addend_units)
        extension = Cat(field[2] & integer, addend[FRACTION + 3 :])
    addend_larger = named(m, "addend_larger", addend_larger)

    in_place = Cat(Const(0, place), product.significand, Const(0, 1))
    larger = Mux(addend_larger, Cat(Const(0, guard), fraction, addend_units), in_place)
    halved = Cat(Const(0, guard - 1), fraction, addend_normal, Const(0, 2))
    unaligned = named(m, "unaligned", Mux(addend_larger, in_place, halved))
    moved, lost = shift_right(m, unaligned, named(m, "alignment", shift), "moved")

    subtract = product.sign ^ addend_sign
    sticky = lost & ~product.zero
    if integer is not None:
        subtract, sticky = subtract & ~integer, sticky & ~integer
    subtract = named(m, "subtract", subtract)
    smaller: Value = Cat(moved, Const(0, 1))
    smaller = Mux(subtract, ~smaller, smaller)
    if integer is not None:
        above = guard + product_bits
        negative = (integer & product.sign).replicate(guard + int32.bits - above)
        smaller = Cat(smaller[:above], smaller[above:] | negative)

    addend_nan = addend_special & fraction.any()
    special = named(m, "special", product.special | addend_special)
    nan = product.nan | addend_nan | (product.special & addend_special & subtract)
    nan = named(m, "nan", nan)
    # The exponent of an infinite product is arbitrary, so infinities override the comparison.
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


def _compare(
    m: Module, product: Product, addend_exponent: Value, window: Window
) -> tuple[Value, Value]:
    """Whether the addend has the larger exponent or an equal one; shift of the other term."""
    # product exponent - addend exponent - 1, in 11 bits. The product's exponent carries an offset
    # of 512, which inverting its top bit removes; the addend's complement is -(addend + 1).
    top = ~product.exponent[-1]
    signed_exponent = Cat(product.exponent[:-1], top, top)
    difference = (signed_exponent + Cat(~addend_exponent, Const(7, 3)))[:11]
    difference = named(m, "exponent_difference", difference)
    # On equality the addend counts as larger. So the smaller term shifts by the complement of a
    # negative difference, or by a non-negative difference plus 1, which is wired in.
    addend_larger = difference[-1]
    distance = named(m, "distance", Mux(addend_larger, ~difference[:-1], difference[:-1]))
    far = named(m, "far", distance[window.shift_bits :].any())
    shift: Value = distance[: window.shift_bits] | far.replicate(window.shift_bits)
    return addend_larger, shift
