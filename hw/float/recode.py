"""Recoded floats: operands decoded and normalised once, at the edge of an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.numeric.formats import Format, bf16, fp32

__all__ = [
    "EXPONENT_BITS",
    "EXPONENT_OFFSET",
    "OPERAND_BITS",
    "WIDE",
    "Coding",
    "Operand",
    "is_nan",
    "recode",
]


class Operand(NamedTuple):
    """Fields of a recoded float, least significant first, and its class.

    Members
    -------
    fraction : 7 bits for bf16
        Below a hidden bit that is always 1, for subnormals too.
    exponent : 9 bits for bf16
        As :class:`Coding` says.
    sign : 1 bit
    is_zero, is_special, is_nan : 1 bit
        Whether the value is zero, infinite or NaN, NaN.
    """

    fraction: Value
    exponent: Value
    sign: Value
    is_zero: Value
    is_special: Value
    is_nan: Value


@dataclass(frozen=True)
class Coding:
    """Encoding of floats inside an array: sign, exponent code, fraction.

    The code is ``offset`` + e for 1.fraction * 2^e, for normal and subnormal values alike; zero has
    code 0. Codes whose bits from ``special`` up are all 1 are infinity and, with the bit below
    ``special`` set, NaN; codes whose bits from ``zero`` up are all 0 are zero.

    Parameters
    ----------
    fraction_bits, exponent_bits : int
        Widths of the fields.
    offset : int
        Exponent code of 2^0.
    zero, special : int
        Lowest bits of the code that those two tests look at.
    """

    fraction_bits: int
    exponent_bits: int
    offset: int
    zero: int
    special: int

    @classmethod
    def of(cls, formats: tuple[Format, ...]) -> Coding:
        """Narrowest coding that holds every value of every format."""
        fraction_bits = max(format_.fraction_bits for format_ in formats)
        exponent_bits = max(format_.exponent_bits for format_ in formats)
        if exponent_bits > 5:
            return cls(fraction_bits, exponent_bits=9, offset=320, zero=7, special=6)
        if exponent_bits == 5:
            return cls(fraction_bits, exponent_bits=6, offset=32, zero=3, special=4)
        return cls(fraction_bits, exponent_bits=5, offset=16, zero=2, special=2)

    @property
    def bits(self) -> int:
        """Width of a recoded operand."""
        return self.fraction_bits + self.exponent_bits + 1

    @property
    def infinity(self) -> int:
        """Exponent code of infinity."""
        return (1 << self.exponent_bits) - (1 << self.special)

    @property
    def nan(self) -> int:
        """Exponent code of NaN."""
        return self.infinity | 1 << (self.special - 1)

    def split(self, bits: Value) -> Operand:
        """Fields of an operand's bits, and its class."""
        fraction = bits[: self.fraction_bits]
        exponent = bits[self.fraction_bits : self.bits - 1]
        special = exponent[self.special :].all()
        return Operand(
            fraction=fraction,
            exponent=exponent,
            sign=bits[self.bits - 1],
            is_zero=~exponent[self.zero :].any(),
            is_special=special,
            is_nan=special & exponent[self.special - 1],
        )

    def product_exponent(self, total: Value, zero: Value) -> Value:
        """Exponent of a product from the sum of two codes: biased as in fp32, plus 512.

        It belongs to a significand taken in [0.5, 2), so it is the sum of the exponents plus 512 +
        127 + 1. The offsets are chosen so that this takes an inverter or two: twice 320 is already
        that number; twice 32, and twice 16, fall 576 and 608 short of it. The exponent of a zero
        product is below every other: its 512 is not added.
        """
        if self.exponent_bits == 9:
            return total
        top = total[-1]
        if self.exponent_bits == 6:
            return Cat(total[:-1], ~top, top, Const(0, 1), ~zero)
        return Cat(total[:-1], ~top, ~top, top, Const(0, 1), ~zero)


#: Coding of bf16. The codes of two operands less 512 are the exponent of their product, biased as
#: in fp32, if its significand is taken in [0.5, 2): 2 * 320 - 512 = 127 + 1.
WIDE = Coding.of((bf16,))

#: Exponent code of 2^0 in the coding of bf16.
EXPONENT_OFFSET = WIDE.offset

#: Width of its exponent code: bf16 with its subnormals normalised has 261 exponents.
EXPONENT_BITS = WIDE.exponent_bits

#: Width of a recoded bf16.
OPERAND_BITS = WIDE.bits


def is_nan(bits: Value, format_: Format = fp32) -> Value:
    """Whether the bits of a float with infinities are a NaN."""
    width = format_.fraction_bits
    return bits[width:-1].all() & bits[:width].any()


def recode(
    m: Module,
    bits: Value,
    format_: Format = bf16,
    coding: Coding = WIDE,
    fill_is_zero: bool = False,
) -> Value:
    """Recoder of a float: subnormals normalised, exponent rebiased.

    Combinational. Zero bits give zero bits, so an idle wire carries +0.

    Parameters
    ----------
    m : Module
        Takes the statements.
    bits : Value of ``format_.bits`` bits
    format_ : Format
        Format of the value.
    coding : Coding
        Coding that holds the format.
    fill_is_zero : bool
        Whether `Format.fill_nan` is recoded as +0, as for operands of products.

    Returns
    -------
    Value of ``coding.bits`` bits
        As :meth:`Coding.split` splits them.
    """
    width = format_.fraction_bits
    fraction, field, sign = bits[:width], bits[width:-1], bits[-1]
    # A subnormal 0.fraction is shifted left by its leading zeros and its leading 1.
    zeros = Signal(range(max(2, width)))
    for position in range(width):
        with m.If(fraction[position]):
            m.d.comb += zeros.eq(width - 1 - position)
    normalised = (fraction << zeros)[: width - 1]

    recoded = Signal(coding.bits)
    code = Signal(coding.exponent_bits)
    kept = Signal(width, init=0)
    offset = coding.offset - format_.bias
    first = m.If
    if format_.has_nan:
        special = field.all() if format_.has_infinity else bits[:-1].all()
        special_code: Value = Mux(fraction.any(), coding.nan, coding.infinity)
        if fill_is_zero:
            special_code = Mux(fraction.all() & ~sign, 0, special_code)
        with m.If(special):
            m.d.comb += code.eq(special_code)
        first = m.Elif
    with first(field.any()):
        m.d.comb += [code.eq(field + offset), kept.eq(fraction)]
    with m.Elif(fraction.any()):
        m.d.comb += [
            code.eq(offset - zeros),
            kept.eq(Cat(Const(0, 1), normalised)),
        ]
    below = coding.fraction_bits - width
    fields = [Const(0, below)] if below else []
    m.d.comb += recoded.eq(Cat(*fields, kept, code, sign))
    return recoded
