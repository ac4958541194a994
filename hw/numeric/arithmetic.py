"""Addition of aligned terms, rounding, and the cast at read-out.

:func:`hw.numeric.product.multiply`, :func:`hw.numeric.alignment.align`, :func:`add` and
:func:`round_total` in this order are IEEE 754's fusedMultiplyAdd of two bf16 and an fp32. All are
combinational; a pipeline puts :func:`hw.numeric.wires.register` between any two.
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.numeric.alignment import EXPONENT_BITS, FRACTION, GUARD, SHIFT_BITS, SIGN, Aligned
from hw.numeric.formats import bf16, fp32
from hw.numeric.wires import named

__all__ = ["Total", "add", "cast_to_bf16", "round_total"]


class Total(NamedTuple):
    """Exact sum, but for the bits summed up in ``sticky``.

    Members
    -------
    magnitude : 28 or 35 bits
        The window without its sign. If ``fill`` is 1, ones go on below it without end, and 1 is
        added below them: this is a negation whose carry is left to the rounding.
    fill, exponent, subtract, sticky, sign, special, nan
        As in :class:`hw.numeric.alignment.Aligned`, but ``sign`` is that of the sum.
    """

    magnitude: Value
    fill: Value
    exponent: Value
    subtract: Value
    sticky: Value
    sign: Value
    special: Value
    nan: Value


def add(m: Module, terms: Aligned, *, integer: Value | None = None) -> Total:
    """Add aligned terms to a sign and a magnitude.

    A term that lost bits is subtracted as if those were ones: the difference is then the exact
    one rounded down, and ``sticky`` stays true of it.
    """
    carry = named(m, "carry", terms.subtract & ~terms.sticky)
    with_carry = Cat(carry, terms.larger) + Cat(carry, terms.smaller)
    total = named(m, "total", with_carry[1 : len(terms.larger) + 1])
    negative = total[SIGN]
    if integer is not None:
        negative = negative & ~integer
    negative = named(m, "negative", negative)
    magnitude: Value = Mux(negative, ~total[:SIGN], total[:SIGN])
    if integer is not None:
        magnitude = Cat(magnitude, total[SIGN:])
    return Total(
        magnitude=named(m, "magnitude", magnitude),
        fill=named(m, "fill", negative & ~terms.sticky),
        exponent=terms.exponent,
        subtract=terms.subtract,
        sticky=terms.sticky,
        sign=named(m, "total_sign", terms.sign ^ (negative & ~terms.special)),
        special=terms.special,
        nan=terms.nan,
    )


def _normalise(m: Module, magnitude: Value, fill: Value, exponent: Value) -> tuple[Value, Value]:
    """Shift left by the leading zeros but no further than the exponent.

    The bits of the shift are decided from the top: while those so far equal the exponent's, a 0
    in the exponent forbids a 1.
    """
    limited: Value = named(m, "limited", ~exponent[SHIFT_BITS:].any())
    shift: list[Value] = []
    for stage in reversed(range(SHIFT_BITS)):
        amount = 1 << stage
        wanted = ~magnitude[-amount:].any()
        taken = named(m, f"normalise_by_{amount}", wanted & ~(limited & ~exponent[stage]))
        limited = limited & (taken | ~exponent[stage])
        shifted = Mux(taken, Cat(fill.replicate(amount), magnitude[:-amount]), magnitude)
        magnitude = named(m, f"normalised_by_{amount}", shifted)
        shift.insert(0, taken)
    return magnitude, Cat(*shift)


def round_total(m: Module, total: Total, *, integer: Value | None = None) -> Value:
    """Normalise a sum as far as its exponent allows and round it to nearest even.

    Returns
    -------
    Value of 32 bits
        fp32, or the int32 if ``integer``.
    """
    magnitude = total.magnitude[:SIGN]
    half = 1 << (SHIFT_BITS - 1)
    is_zero = ~(magnitude[-half:].any() | magnitude[:-half].any()) & ~total.sticky & ~total.fill
    magnitude, shift = _normalise(m, magnitude, total.fill, total.exponent)

    # The top bit now weighs exponent + 1 - shift; it is the hidden bit, whose own weight in the
    # exponent field makes the 1. Without it the result is subnormal and its field 0: the shift
    # used the exponent up, or the sum is zero.
    hidden = magnitude[-1]
    field = Mux(hidden, (total.exponent - shift)[:EXPONENT_BITS], 0)
    kept, guard, rest = magnitude[GUARD + 1 : -1], magnitude[GUARD], magnitude[:GUARD]
    over_half = named(m, "over_half", guard & (rest.any() | total.sticky | total.fill))
    # Ones below the window and 1 below them carry into it: guard 0 and 7 + 1 make a tie.
    half_or_more = named(m, "half_or_more", guard | (total.fill & rest.all()))
    round_up = named(m, "round_up", over_half | (half_or_more & kept[0]))
    increments = Cat(round_up, Const(0, FRACTION - 1), hidden)
    rounded = named(m, "rounded", (Cat(kept, field) + increments)[:32])

    fraction, biased = rounded[:FRACTION], rounded[FRACTION:]
    overflow = biased[-1] | biased[:-1].all()
    special = named(m, "result_special", total.special | overflow)
    # Exact cancellation gives +0; zeros of one sign keep it.
    sign = total.sign & ~(is_zero & total.subtract & ~total.special)
    result = Cat(
        Mux(special, total.nan.shift_left(FRACTION - 1), fraction),
        biased[:-1] | special.replicate(fp32.exponent_bits),
        sign,
    )
    if integer is None:
        return result
    return Mux(integer, total.magnitude[GUARD:], result)


def cast_to_bf16(m: Module, bits: Value) -> Value:
    """Round an fp32 to bf16, to nearest even.

    Combinational. Overflow gives infinity, subnormals are kept, NaN becomes canonical.
    """
    dropped = fp32.bits - bf16.bits
    magnitude, sign = bits[:-1], bits[-1]
    kept, guard, rest = magnitude[dropped:], magnitude[dropped - 1], magnitude[: dropped - 1]
    up = guard & (kept[0] | rest.any())
    nan = magnitude[FRACTION:].all() & magnitude[:FRACTION].any()
    rounded = Signal(bf16.bits - 1, name="rounded_to_bf16")
    m.d.comb += rounded.eq(kept + up)
    return Mux(nan, bf16.canonical_nan, Cat(rounded, sign))
