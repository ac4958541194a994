"""Pipeline steps that the special function units (SFU) share."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.float.recode import Coding, Operand, recode
from hw.float.sticky_shift import shift_right
from hw.float.table_lookup import lookup
from hw.float.wires import named
from hw.lib.delay import delayed
from hw.numeric.formats import fp32
from hw.numeric.function_tables import (
    FULL_WIDTH,
    GUARD,
    LOG2_E_BITS,
    argument_bits,
    exp2_table,
    log2_e,
)

__all__ = [
    "CODING",
    "EXPONENT_BASE",
    "POWER_CYCLES",
    "ROUND_CYCLES",
    "Power",
    "build_power",
    "decode",
    "multiplied_split_cycles",
    "normalise_bit",
    "round_magnitude",
    "split",
]

#: Coding of a decoded operand.
CODING = Coding.of((fp32,))

#: Added to an exponent, 0 for that of the smallest normal fp32: one less than the biased exponent.
EXPONENT_BASE = fp32.bias - 1

#: Cycles of :func:`round_magnitude`.
ROUND_CYCLES = 2

#: Cycles of :func:`build_power`.
POWER_CYCLES = 4

_FRACTION = fp32.fraction_bits


def decode(m: Module, x: Value) -> Operand:
    """Fields of an fp32, one cycle later, subnormals normalised."""
    operand = Signal(CODING.bits, name="operand", reset_less=True)
    m.d.sync += operand.eq(recode(m, x, fp32, CODING))
    return CODING.split(operand)


def normalise_bit(m: Module, value: Value, scale: int, name: str) -> tuple[Value, Value]:
    """A value in [0.5, 2) times 2^scale normalised to [1, 2), and whether it was doubled."""
    small = named(m, f"{name}_small", ~value[scale:].any())
    return named(m, f"{name}_normal", Mux(small, value << 1, value)[: scale + 2]), small


def round_magnitude(
    m: Module, value: Value, *, scale: int, base: Value, width: int, subnormal: bool = True
) -> Value:
    """Round ``value * 2^(base - EXPONENT_BASE - scale)`` to an fp32 of a shorter significand.

    Takes :data:`ROUND_CYCLES` cycles.

    Parameters
    ----------
    m : Module
        Takes the statements.
    value : Value
        In [1, 2] times 2^scale, or any smaller one with base 0.
    base : Value, signed
        Exponent of the value, and :data:`EXPONENT_BASE`.
    width : int
        Significand bits of the result.
    subnormal : bool
        Whether results below 2^-126 occur.

    Returns
    -------
    Value of 31 bits
        Magnitude: nearest, ties to even, infinity beyond the largest.
    """
    sticky: Value = Const(0, 1)
    if subnormal:
        short = -base
        below = named(m, "below", Mux(short[-1], 0, short[:-1]))
        base = Mux(short[-1], base.as_unsigned(), 0)
        value, sticky = shift_right(m, value, below, "denormalise")
    value = delayed(m, value, 1, name="to_round")
    sticky = delayed(m, sticky, 1, name="round_sticky")
    base = delayed(m, base.as_unsigned(), 1, name="round_base")
    drop = scale - (width - 1)
    kept, guard, rest = value[drop:], value[drop - 1], value[: drop - 1]
    up = guard & (kept[0] | rest.any() | sticky)
    total = named(m, "rounded", Cat(Const(0, width - 1), base) + kept + up)
    biased = total[width - 1 :]
    overflow = named(m, "overflow", biased >= 255)
    magnitude = Cat(
        Const(0, FULL_WIDTH - width),
        Mux(overflow, 0, total[: width - 1]),
        biased[:8] | overflow.replicate(8),
    )
    rounded: Value = delayed(m, magnitude, 1, name="magnitude")
    return rounded


def multiplied_split_cycles(multiplied: bool) -> int:
    """Cycles of :func:`split`."""
    return 3 if multiplied else 2


def split(m: Module, x: Value, width: int, *, multiplied: bool, doubled: bool = False) -> Value:
    """Argument reduction: |x|, |x| log2(e), or twice that, rounded down, in fixed point.

    Takes :func:`multiplied_split_cycles` cycles.

    Returns
    -------
    Value
        9 integer bits and ``argument_bits(width)`` fraction bits; all ones on overflow.
    """
    fraction_bits = argument_bits(width)
    bits = 9 + fraction_bits
    field = delayed(m, x[_FRACTION:-1], 1, name="field")
    significand = delayed(m, Cat(x[:_FRACTION], x[_FRACTION:-1].any()), 1, name="significand")
    if multiplied:
        product = (significand * log2_e(width))[: FULL_WIDTH + width + LOG2_E_BITS + 1]
        product = delayed(m, product, 1, name="scaled")
        field = delayed(m, field, 1, name="scaled_field")
        # At exponent 7 the binary point lies 9 bits below the top.
        aligned = product[len(product) - bits :]
    else:
        up = fraction_bits + 7 - _FRACTION
        aligned = Cat(Const(0, up), significand) if up >= 0 else significand[-up:]
    top = 134 - doubled
    large = named(m, "large", field > top)
    distance = named(m, "distance", (top - field)[:8])
    aligned = named(m, "aligned", Cat(aligned, Const(0, 1))[:bits])
    moved, _ = shift_right(m, aligned, distance, "split")
    fixed: Value = delayed(m, moved | large.replicate(bits), 1, name="fixed")
    return fixed


class Power(NamedTuple):
    """Power of two of a fixed-point number, as a float.

    Members
    -------
    value : width + GUARD + 2 bits
        In [1, 2], with ``width + GUARD`` fraction bits.
    exponent : 10 bits, signed
    """

    value: Value
    exponent: Value


def build_power(m: Module, fixed: Value, negative: Value, width: int) -> Power:
    """2^fixed or, if negative, 2^-fixed, by table lookup.

    Takes :data:`POWER_CYCLES` cycles. ``fixed`` is as :func:`split` returns it.
    """
    fraction_bits = argument_bits(width)
    signed = (Cat(fixed, Const(0, 1)) ^ negative.replicate(len(fixed) + 1)) + negative
    signed = delayed(m, signed[: len(fixed) + 1], 1, name="power")
    value = lookup(m, exp2_table(width), signed[:fraction_bits], "exp2")
    exponent = delayed(m, signed[fraction_bits:].as_signed(), 3, name="power_exponent")
    return Power(Cat(value, Const(0, 1))[: width + GUARD + 2], exponent)
