"""Requantizer of int32 sums to int8: multiply, shift, round half to even, saturate; exact.

A result is a sum times a factor over 2^40. The factor is the scale, shifted left by its leading
zeros as far as the shift leaves room; the sum is shifted left by the rest. A sum that loses bits
in this shift has a result beyond 8 bits. So a 33 × 16-bit multiplier suffices, and no product is
shifted by a variable amount. Scale and shift are recoded once for all columns.
"""

from __future__ import annotations

from typing import TypeAlias

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.float.carry_save import Columns, sum_columns
from hw.float.wires import named
from hw.lib.component import Component

__all__ = ["FACTOR", "SCALE_BITS", "SHIFT_BITS", "FactorRecoder", "Scaler"]

#: Width of the scale, and of the shift count.
SCALE_BITS = 16
SHIFT_BITS = 6

_SUM_BITS = 32
_BIASED_BITS = _SUM_BITS + 1
_RESULT_BITS = 8
_POINT = 40
_AFTER_BITS = 3
_MOVE_BITS = 5
# Radix-8 digits of the sum; the widest multiple is seven times the factor.
_DIGIT_BITS = 3
_MULTIPLE_BITS = SCALE_BITS + _DIGIT_BITS
# A product, the rounding half and their sign.
_TOTAL_BITS = _BIASED_BITS + SCALE_BITS + 1
# In a tie the lowest 1 of the sum and that of its factor, 15 at most, add up to the bit of a half.
_FIRST_TIE = _POINT - SCALE_BITS
_TIE_BITS = _BIASED_BITS - _FIRST_TIE

#: A recoded scale and shift: left shift of sums; right shift of results, for shifts above 40;
#: multiples of the factor by 1, 3, 5 and 7; mask of the sum's highest bits that detect a tie, and
#: their value in a tie.
FACTOR = data.StructLayout(
    {
        "move": _MOVE_BITS,
        "after": _AFTER_BITS,
        "once": SCALE_BITS,
        "thrice": SCALE_BITS + 2,
        "five": _MULTIPLE_BITS,
        "seven": _MULTIPLE_BITS,
        "tells": _TIE_BITS,
        "tie": _TIE_BITS,
    }
)

_Factor: TypeAlias = "data.View[data.StructLayout]"


class FactorRecoder(Component):
    """Recoder of scale and shift into the form shared by the requantizers of all columns.

    Combinational.

    Members
    -------
    i_scale, i_shift
        Unsigned factor, and the right shift of products, at most 47.
    o_factor : `FACTOR`
    """

    i_scale: Signal
    i_shift: Signal
    o_factor: _Factor

    def __init__(self) -> None:
        super().__init__(
            {"i_scale": In(SCALE_BITS), "i_shift": In(SHIFT_BITS), "o_factor": Out(FACTOR)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        out = self.o_factor
        beyond = named(m, "beyond", self.i_shift >= _POINT)
        room = named(m, "room", Mux(beyond, 0, _POINT - self.i_shift)[:SHIFT_BITS])
        factor: Value = self.i_scale
        for step in reversed(range(SCALE_BITS.bit_length() - 1)):
            places = 1 << step
            zeros = ~factor[SCALE_BITS - places :].any()
            moves = named(m, f"moves_{step}", zeros & (room >= places))
            moved = Mux(moves, Cat(Const(0, places), factor), factor)
            factor = named(m, f"factor_{step}", moved[:SCALE_BITS])
            room = named(m, f"room_{step}", (room - Mux(moves, places, 0))[:SHIFT_BITS])
        # With more room every sum but 0 saturates; so it does at the greatest shift with the
        # largest factor. A factor of 0 saturates none.
        far = room[_MOVE_BITS:].any()
        scales = self.i_scale.any()
        factor = named(m, "factor", Mux(scales, factor | far.replicate(SCALE_BITS), 0))
        after = Mux(beyond, self.i_shift[:_AFTER_BITS], 0)
        # Whether the lowest 1 of a sum in a tie is at a bit, from the highest down, or above it.
        first = SCALE_BITS - _TIE_BITS - 1
        ones = [factor[: bit + 1].any() for bit in range(first, SCALE_BITS - 1)]
        spare = Const(-1, (1 << _AFTER_BITS) + 1)
        reaches = named(m, "reaches", (Cat(*ones, spare) >> after)[: _TIE_BITS + 1])
        most = (room | far.replicate(SHIFT_BITS))[:_MOVE_BITS]
        m.d.comb += [
            out.move.eq(Mux(scales, most, 0)),
            out.after.eq(after),
            out.once.eq(factor),
            out.thrice.eq(factor * 3),
            out.five.eq(factor * 5),
            out.seven.eq(Cat(Const(0, 3), factor) - factor),
            out.tells.eq(Cat(*reversed(reaches[1:]))),
            out.tie.eq(Cat(*reversed(reaches[1:] & ~reaches[:-1]))),
        ]
        return m


def _even(m: Module, low: Value, middle: Value, negative: Value, factor: _Factor) -> Value:
    """Half of the lowest digit's magnitude times the factor: 0 to 3, or 4 less that."""
    one = named(m, "one", middle ^ negative)
    four = named(m, "four", negative & ~middle)
    odd = Mux(one, factor.thrice, factor.once)
    twice = Cat(Const(0, 1), factor.once)
    fourfold = Cat(Const(0, 2), factor.once) & four.replicate(SCALE_BITS + 2)
    return Mux(low, odd, Mux(middle, twice, fourfold))


def _odd(
    m: Module, low: Value, middle: Value, negative: Value, factor: _Factor, digit: int
) -> Value:
    """Magnitude of a digit times the factor."""
    second = named(m, f"second_{digit}", low ^ negative)
    third = named(m, f"third_{digit}", middle ^ negative)
    small = Mux(second, factor.thrice, factor.once)
    large = Mux(second, factor.seven, factor.five)
    # The low two bits of fivefold and sevenfold equal those of the factor and the threefold.
    return Cat(small[:2], Mux(third, large[2:], small[2:]))


def _product_and_half(m: Module, value: Value, factor: _Factor) -> Value:
    """A sum times the factor, plus half a unit of the result for rounding.

    Twice a number in two's complement is -1 plus the sum of its powers of two, each added for a 1
    and subtracted for a 0; the sign of the highest bit is opposite. So three bits are a digit of
    ±1, ±3, ±5 or ±7, never 0; the -1 makes the lowest digit even, from -8 to 6.
    """
    columns: Columns = [[] for _ in range(_TOTAL_BITS)]
    bits = Cat(value[:-1], ~value[-1])
    excess = 0
    for digit in range(_BIASED_BITS // _DIGIT_BITS):
        low, middle, high = bits.word_select(digit, _DIGIT_BITS)
        negative = named(m, f"negative_{digit}", ~high)
        if digit == 0:
            place, multiple = 0, _even(m, low, middle, negative, factor)
        else:
            place = _DIGIT_BITS * digit - 1
            multiple = _odd(m, low, middle, negative, factor, digit)
        row = named(m, f"row_{digit}", multiple ^ negative.replicate(len(multiple)))
        # An inverted row lacks 1; its inverted sign bit adds an excess of that bit's weight.
        for weight, bit in enumerate(Cat(row, high), place):
            if weight < _TOTAL_BITS:
                columns[weight].append(bit)
        columns[place].append(negative)
        excess += 1 << (place + len(row))
    for after in range(1 << _AFTER_BITS):
        columns[_POINT - 1 + after].append(factor.after == after)
    return sum_columns(m, columns, -excess)


class Scaler(Component):
    """Requantizer of one column: ``saturate(round((sum + bias) * scale / 2^shift))``.

    One sum per cycle; its result is valid in the next cycle and holds until another sum is taken.

    Parameters
    ----------
    bias : bool
        Whether a bias is added.

    Members
    -------
    i_factor, i_relu
        Static: bits of `FACTOR`; results below zero become 0.
    i_take, i_sum, i_bias
        Sum to requantize, and its bias if the unit has one.
    o_result
        Eight bits, signed.
    """

    i_factor: Signal
    i_relu: Signal
    i_take: Signal
    i_sum: Signal
    i_bias: Signal
    o_result: Signal

    def __init__(self, *, bias: bool) -> None:
        self._bias = bias
        members = {
            # Bits, not a structure: its fields would be wires again at every instance.
            "i_factor": In(FACTOR.size),
            "i_relu": In(1),
            "i_take": In(1),
            "i_sum": In(signed(_SUM_BITS)),
            "o_result": Out(signed(_RESULT_BITS)),
        }
        if bias:
            members["i_bias"] = In(signed(_SUM_BITS))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        factor = FACTOR(self.i_factor)
        biased = Signal(signed(_BIASED_BITS))
        m.d.comb += biased.eq(self.i_sum + self.i_bias if self._bias else self.i_sum)
        low, sign = named(m, "low", biased[:-1]), biased[-1]
        lost: Value = Const(0, 1)
        for step in reversed(range(_MOVE_BITS)):
            places, moves = 1 << step, factor.move[step]
            leaves = (low[-places:] ^ sign.replicate(places)).any()
            lost = lost | (moves & leaves)
            moved = Mux(moves, Cat(Const(0, places), low), low)
            low = named(m, f"low_{step}", moved[:_SUM_BITS])
        value = Signal(_BIASED_BITS, reset_less=True)
        far = Signal(reset_less=True)
        with m.If(self.i_take):
            m.d.sync += [value.eq(Cat(low, sign)), far.eq(lost)]

        # A half is added, so a tie rounds up: an odd result must be lowered by one.
        total = named(m, "total", _product_and_half(m, value, factor))
        kept = named(m, "kept", total[_POINT:].as_signed() >> factor.after)
        highest = (value[_FIRST_TIE:] & factor.tells) == factor.tie
        tie = ~value[:_FIRST_TIE].any() & highest
        beyond = kept[_RESULT_BITS - 1 :]
        saturates = far | (beyond.any() & ~beyond.all())
        most = Cat((~value[-1]).replicate(_RESULT_BITS - 1), value[-1])
        nearest = Cat(kept[0] & ~tie, kept[1:_RESULT_BITS])
        below = self.i_relu & value[-1]
        m.d.comb += self.o_result.eq(Mux(saturates, most, nearest) & ~below.replicate(_RESULT_BITS))
        return m
