"""Second half of a floating-point adder: addition of aligned terms, normalisation, rounding.

:func:`hw.float.dot1.multiply`, :func:`hw.float.align.align`, :func:`add` and
:func:`round_total` in this order are IEEE 754's fusedMultiplyAdd of two floats and an fp32. All are
combinational; a pipeline puts :func:`hw.float.wires.register` between any two.
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.float.align import EXPONENT_BITS, FRACTION, NARROW, Aligned, Window
from hw.float.recode import is_nan
from hw.float.wires import named
from hw.numeric.formats import bf16, fp32

__all__ = ["Total", "add", "cast_to_bf16", "round_total"]


class Total(NamedTuple):
    """Exact sum of two aligned terms, except for the bits collected in ``sticky``.

    Members
    -------
    magnitude : 28 or 35 bits, or the window's
        Magnitude in the window. If ``fill`` is 1, ones continue below it without end and 1 is
        added below them: a negation whose carry is left to the rounding.
    fill, exponent, subtract, sticky, sign, special, nan
        As in :class:`hw.float.align.Aligned`, but ``sign`` is that of the sum.
    """

    magnitude: Value
    fill: Value
    exponent: Value
    subtract: Value
    sticky: Value
    sign: Value
    special: Value
    nan: Value


def add(
    m: Module, terms: Aligned, *, integer: Value | None = None, window: Window = NARROW
) -> Total:
    """Adder of aligned terms: sign and magnitude of their sum.

    If the smaller term lost bits, these are subtracted as if they were all ones: the difference is
    then the exact one rounded down, and ``sticky`` remains true of it.
    """
    carry = named(m, "carry", terms.subtract & ~terms.sticky)
    with_carry = Cat(carry, terms.larger) + Cat(carry, terms.smaller)
    total = named(m, "total", with_carry[1 : len(terms.larger) + 1])
    negative = total[window.sign]
    if integer is not None:
        negative = negative & ~integer
    negative = named(m, "negative", negative)
    magnitude: Value = Mux(negative, ~total[: window.sign], total[: window.sign])
    if integer is not None:
        magnitude = Cat(magnitude, total[window.sign :])
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


def _normalise(
    m: Module, magnitude: Value, fill: Value, exponent: Value, window: Window
) -> tuple[Value, Value, Value, Value]:
    """Normalisation shift to the left, by the leading zeros but at most by the exponent.

    The bits of the shift count are decided from the top: while those so far equal the exponent's,
    a 0 in the exponent forbids a 1. In a long window, bits that no later stage can raise to the
    guard bit are dropped.

    Returns
    -------
    Value, Value
        Shifted magnitude (in a long window at least its 25 leading bits); shift count.
    Value, Value
        Whether any of the bits dropped was 1, and whether all were.
    """
    limited: Value = named(m, "limited", ~exponent[window.shift_bits :].any())
    shift: list[Value] = []
    any_dropped: list[Value] = []
    all_dropped: list[Value] = []
    for stage in reversed(range(window.shift_bits)):
        amount = 1 << stage
        wanted = ~magnitude[-amount:].any()
        taken = named(m, f"normalise_by_{amount}", wanted & ~(limited & ~exponent[stage]))
        limited = limited & (taken | ~exponent[stage])
        shifted = Mux(taken, Cat(fill.replicate(amount), magnitude[:-amount]), magnitude)
        magnitude = named(m, f"normalised_by_{amount}", shifted)
        shift.insert(0, taken)
        excess = len(magnitude) - (FRACTION + NARROW.guard + amount)
        if window != NARROW and excess > 0:
            any_dropped.append(magnitude[:excess].any())
            all_dropped.append(magnitude[:excess].all())
            magnitude = magnitude[excess:]
    return magnitude, Cat(*shift), Cat(*any_dropped).any(), Cat(*all_dropped).all()


def round_total(
    m: Module, total: Total, *, integer: Value | None = None, window: Window = NARROW
) -> Value:
    """Normalise a sum as far as its exponent allows and round it to nearest even.

    Returns
    -------
    Value of 32 bits
        fp32, or the int32 if ``integer``.
    """
    magnitude = total.magnitude[: window.sign]
    half = 1 << (window.shift_bits - 1)
    is_zero = ~(magnitude[-half:].any() | magnitude[:-half].any()) & ~total.sticky & ~total.fill
    magnitude, shift, any_dropped, all_dropped = _normalise(
        m, magnitude, total.fill, total.exponent, window
    )

    # The top bit now weighs exponent + 1 - shift. It is the hidden bit, whose own weight in the
    # exponent field adds the 1. Without it the result is subnormal and its exponent field is 0:
    # the shift used the exponent up, or the sum is zero.
    hidden = magnitude[-1]
    field = Mux(hidden, (total.exponent - shift)[:EXPONENT_BITS], 0)
    guard_place = len(magnitude) - FRACTION - 2
    kept = magnitude[guard_place + 1 : -1]
    guard, rest = magnitude[guard_place], magnitude[:guard_place]
    any_rest, all_rest = rest.any(), rest.all()
    if window != NARROW:
        any_rest, all_rest = any_rest | any_dropped, all_rest & all_dropped
    over_half = named(m, "over_half", guard & (any_rest | total.sticky | total.fill))
    # Ones below the window plus 1 carry into it: guard bits 0 and 7 + 1 make a tie.
    half_or_more = named(m, "half_or_more", guard | (total.fill & all_rest))
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
    return Mux(integer, total.magnitude[window.guard :], result)


def cast_to_bf16(m: Module, bits: Value) -> Value:
    """Round an fp32 to bf16, to nearest even.

    Combinational. Overflow gives infinity, subnormals are kept, NaN becomes canonical.
    """
    dropped = fp32.bits - bf16.bits
    magnitude, sign = bits[:-1], bits[-1]
    kept, guard, rest = magnitude[dropped:], magnitude[dropped - 1], magnitude[: dropped - 1]
    up = guard & (kept[0] | rest.any())
    rounded = Signal(bf16.bits - 1, name="rounded_to_bf16")
    m.d.comb += rounded.eq(kept + up)
    return Mux(is_nan(bits), bf16.canonical_nan, Cat(rounded, sign))
