"""The accumulating half of a multiply-accumulate, and the cast at read-out.

:func:`align`, :func:`add` and :func:`round_total` in this order are IEEE 754's
fusedMultiplyAdd in fp32 once :func:`hw.numeric.product.multiply` has made the exact product. All
are combinational; a pipeline puts :func:`register` between any two.

They share one fixed-point window, whose bits weigh (least significant first):

====== ==================================================================================
0..2   below the last place of an fp32 significand: what cancellation and rounding need
3..25  its fraction
26     its hidden bit
27     carry of the sum
28     sign of the sum
29..34 with int8 only: an int32 sum occupies bits 3..34
====== ==================================================================================
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.numeric.formats import bf16, fp32, int32
from hw.numeric.product import PRODUCT_BITS, Product

__all__ = ["Aligned", "Total", "add", "align", "cast_to_bf16", "register", "round_total"]

Bundle = TypeVar("Bundle", "Aligned", "Total", Product)

_FRACTION = fp32.fraction_bits
_GUARD = 3
_HIDDEN = _GUARD + _FRACTION
_SIGN = _HIDDEN + 2
#: Bit of the window that a product's last place has before it is shifted.
_PRODUCT = _HIDDEN + 1 - PRODUCT_BITS
_SHIFT_BITS = 5
_EXPONENT_BITS = fp32.exponent_bits + 1


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


class Total(NamedTuple):
    """Exact sum, but for the bits summed up in ``sticky``.

    Members
    -------
    magnitude : 28 or 35 bits
        The window without its sign. If ``fill`` is 1, ones go on below it without end, and 1 is
        added below them: this is a negation whose carry is left to the rounding.
    fill, exponent, subtract, sticky, sign, special, nan
        As in :class:`Aligned`, but ``sign`` is that of the sum.
    """

    magnitude: Value
    fill: Value
    exponent: Value
    subtract: Value
    sticky: Value
    sign: Value
    special: Value
    nan: Value


def register(m: Module, bundle: Bundle, name: str) -> Bundle:
    """Delay every value of a bundle by one cycle; data registers take no reset."""
    delayed = []
    for field, value in zip(bundle._fields, bundle, strict=True):
        copy = Signal.like(value, name=f"{name}_{field}", reset_less=True)
        m.d.sync += copy.eq(value)
        delayed.append(copy)
    return type(bundle)._make(delayed)


def _named(m: Module, name: str, value: Value) -> Signal:
    signal = Signal.like(value, name=name)
    m.d.comb += signal.eq(value)
    return signal


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
    fraction, field, addend_sign = addend[:_FRACTION], addend[_FRACTION:-1], addend[-1]
    addend_normal = _named(m, "addend_normal", field.any())
    addend_special = _named(m, "addend_special", field.all())
    # A subnormal has the exponent of the smallest normal and no hidden bit.
    addend_exponent = _named(m, "addend_exponent", Cat(field[0] | ~addend_normal, field[1:]))

    # product exponent - addend exponent - 1, in 11 bits: the product's carries 512, which the
    # inversion of its top bit takes off again; the complement of the addend's is -(addend + 1).
    top = ~product.exponent[-1]
    signed_exponent = Cat(product.exponent[:-1], top, top)
    difference = (signed_exponent + Cat(~addend_exponent, Const(7, 3)))[:11]
    difference = _named(m, "exponent_difference", difference)
    # On equality the addend counts as larger. So the smaller term moves by the complement of a
    # negative difference, and by a difference that is not negative and 1, which is wired in.
    addend_larger = difference[-1]
    distance = _named(m, "distance", Mux(addend_larger, ~difference[:-1], difference[:-1]))
    far = _named(m, "far", distance[_SHIFT_BITS:].any())
    shift: Value = distance[:_SHIFT_BITS] | far.replicate(_SHIFT_BITS)
    addend_units: Value = Cat(addend_normal, Const(0, 1))
    extension: Value = Const(0, 1)
    if integer is not None:
        # The sum of int8 products takes the product's road to bit 3, the int32 the addend's.
        addend_larger = addend_larger | integer
        shift = Mux(integer, _PRODUCT - _GUARD, shift)
        addend_units = Mux(integer, field[:2], addend_units)
        extension = Cat(field[2] & integer, addend[_FRACTION + 3 :])
    addend_larger = _named(m, "addend_larger", addend_larger)

    in_place = Cat(Const(0, _PRODUCT), product.significand, Const(0, 1))
    larger = Mux(addend_larger, Cat(Const(0, _GUARD), fraction, addend_units), in_place)
    halved = Cat(Const(0, _GUARD - 1), fraction, addend_normal, Const(0, 2))
    moved, lost = _shift_right(
        m, Mux(addend_larger, in_place, halved), _named(m, "alignment", shift)
    )

    subtract = product.sign ^ addend_sign
    sticky = lost & ~product.zero
    if integer is not None:
        subtract, sticky = subtract & ~integer, sticky & ~integer
    subtract = _named(m, "subtract", subtract)
    smaller: Value = Cat(moved, Const(0, 1))
    smaller = Mux(subtract, ~smaller, smaller)
    if integer is not None:
        above = _GUARD + PRODUCT_BITS
        negative = (integer & product.sign).replicate(_GUARD + int32.bits - above)
        smaller = Cat(smaller[:above], smaller[above:] | negative)

    addend_nan = addend_special & fraction.any()
    special = _named(m, "special", product.special | addend_special)
    nan = product.nan | addend_nan | (product.special & addend_special & subtract)
    nan = _named(m, "nan", nan)
    # An infinite product may have any exponent code, an infinite addend a smaller one.
    follow_addend = Mux(special, ~product.special, addend_larger)
    sign = Mux(follow_addend, addend_sign, product.sign) & ~nan
    exponent = Mux(addend_larger, addend_exponent, product.exponent[:_EXPONENT_BITS])
    return Aligned(
        larger=_named(m, "larger", Cat(larger, extension)),
        smaller=_named(m, "smaller", smaller),
        exponent=_named(m, "exponent", exponent),
        subtract=subtract,
        sticky=_named(m, "sticky", sticky),
        sign=_named(m, "sign", sign),
        special=special,
        nan=nan,
    )


def _shift_right(m: Module, value: Value, shift: Value) -> tuple[Value, Value]:
    """The value shifted, and whether a 1 fell off."""
    lost: Value = Const(0, 1)
    for stage in reversed(range(len(shift))):
        amount = 1 << stage
        value = _named(m, f"before_shift_by_{amount}", value)
        lost = lost | (value[:amount].any() & shift[stage])
        value = Mux(shift[stage], value[amount:], value)
    return _named(m, "moved", value), lost


def add(m: Module, terms: Aligned, *, integer: Value | None = None) -> Total:
    """Add aligned terms to a sign and a magnitude.

    A term that lost bits is subtracted as if those were ones: the difference is then the exact
    one rounded down, and ``sticky`` stays true of it.
    """
    carry = _named(m, "carry", terms.subtract & ~terms.sticky)
    with_carry = Cat(carry, terms.larger) + Cat(carry, terms.smaller)
    total = _named(m, "total", with_carry[1 : len(terms.larger) + 1])
    negative = total[_SIGN]
    if integer is not None:
        negative = negative & ~integer
    negative = _named(m, "negative", negative)
    magnitude: Value = Mux(negative, ~total[:_SIGN], total[:_SIGN])
    if integer is not None:
        magnitude = Cat(magnitude, total[_SIGN:])
    return Total(
        magnitude=_named(m, "magnitude", magnitude),
        fill=_named(m, "fill", negative & ~terms.sticky),
        exponent=terms.exponent,
        subtract=terms.subtract,
        sticky=terms.sticky,
        sign=_named(m, "total_sign", terms.sign ^ (negative & ~terms.special)),
        special=terms.special,
        nan=terms.nan,
    )


def _normalise(m: Module, magnitude: Value, fill: Value, exponent: Value) -> tuple[Value, Value]:
    """Shift left by the leading zeros but no further than the exponent.

    The bits of the shift are decided from the top: while those so far equal the exponent's, a 0
    in the exponent forbids a 1.
    """
    limited: Value = _named(m, "limited", ~exponent[_SHIFT_BITS:].any())
    shift: list[Value] = []
    for stage in reversed(range(_SHIFT_BITS)):
        amount = 1 << stage
        wanted = ~magnitude[-amount:].any()
        taken = _named(m, f"normalise_by_{amount}", wanted & ~(limited & ~exponent[stage]))
        limited = limited & (taken | ~exponent[stage])
        shifted = Mux(taken, Cat(fill.replicate(amount), magnitude[:-amount]), magnitude)
        magnitude = _named(m, f"normalised_by_{amount}", shifted)
        shift.insert(0, taken)
    return magnitude, Cat(*shift)


def round_total(m: Module, total: Total, *, integer: Value | None = None) -> Value:
    """Normalise a sum as far as its exponent allows and round it to nearest even.

    Returns
    -------
    Value of 32 bits
        fp32, or the int32 if ``integer``.
    """
    magnitude = total.magnitude[:_SIGN]
    half = 1 << (_SHIFT_BITS - 1)
    is_zero = ~(magnitude[-half:].any() | magnitude[:-half].any()) & ~total.sticky & ~total.fill
    magnitude, shift = _normalise(m, magnitude, total.fill, total.exponent)

    # The top bit now weighs exponent + 1 - shift; it is the hidden bit, whose own weight in the
    # exponent field makes the 1. Without it the result is subnormal and its field 0: the shift
    # used the exponent up, or the sum is zero.
    hidden = magnitude[-1]
    field = Mux(hidden, (total.exponent - shift)[:_EXPONENT_BITS], 0)
    kept, guard, rest = magnitude[_GUARD + 1 : -1], magnitude[_GUARD], magnitude[:_GUARD]
    over_half = _named(m, "over_half", guard & (rest.any() | total.sticky | total.fill))
    # Ones below the window and 1 below them carry into it: guard 0 and 7 + 1 make a tie.
    half_or_more = _named(m, "half_or_more", guard | (total.fill & rest.all()))
    round_up = _named(m, "round_up", over_half | (half_or_more & kept[0]))
    increments = Cat(round_up, Const(0, _FRACTION - 1), hidden)
    rounded = _named(m, "rounded", (Cat(kept, field) + increments)[:32])

    fraction, biased = rounded[:_FRACTION], rounded[_FRACTION:]
    overflow = biased[-1] | biased[:-1].all()
    special = _named(m, "result_special", total.special | overflow)
    # Exact cancellation gives +0; zeros of one sign keep it.
    sign = total.sign & ~(is_zero & total.subtract & ~total.special)
    result = Cat(
        Mux(special, total.nan.shift_left(_FRACTION - 1), fraction),
        biased[:-1] | special.replicate(fp32.exponent_bits),
        sign,
    )
    if integer is None:
        return result
    return Mux(integer, total.magnitude[_GUARD:], result)


def cast_to_bf16(m: Module, bits: Value) -> Value:
    """Round an fp32 to bf16, to nearest even.

    Combinational. Overflow gives infinity, subnormals are kept, NaN becomes canonical.
    """
    dropped = fp32.bits - bf16.bits
    magnitude, sign = bits[:-1], bits[-1]
    kept, guard, rest = magnitude[dropped:], magnitude[dropped - 1], magnitude[: dropped - 1]
    up = guard & (kept[0] | rest.any())
    nan = magnitude[_FRACTION:].all() & magnitude[:_FRACTION].any()
    rounded = Signal(bf16.bits - 1, name="rounded_to_bf16")
    m.d.comb += rounded.eq(kept + up)
    return Mux(nan, bf16.canonical_nan, Cat(rounded, sign))
