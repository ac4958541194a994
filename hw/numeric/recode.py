"""Operands as the cells take them: recoded once, at the edge of a grid."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.numeric.formats import bf16

__all__ = ["EXPONENT_BITS", "EXPONENT_OFFSET", "OPERAND_BITS", "Operand", "recode"]

#: Exponent code of 2^0, so that the codes of two operands less 512 are the exponent of their
#: product, biased as in fp32, if its significand is taken in [0.5, 2): 2 * 320 - 512 = 127 + 1.
EXPONENT_OFFSET = 320

#: Width of an exponent code: bf16 with its subnormals normalised has 261 exponents.
EXPONENT_BITS = 9

#: Width of a recoded bf16.
OPERAND_BITS = bf16.fraction_bits + EXPONENT_BITS + 1

_INFINITY = 0b111_000000
_NAN = 0b111_100000


class Operand(NamedTuple):
    """Fields of a recoded bf16, least significant first.

    Members
    -------
    fraction : 7 bits
        Below a hidden bit that is always 1, for subnormals too.
    exponent : 9 bits
        320 + e for 1.fraction * 2^e (187 to 447), 0 for zero, 448 for infinity, 480 for NaN.
    sign : 1 bit
    """

    fraction: Value
    exponent: Value
    sign: Value

    @classmethod
    def of(cls, bits: Value) -> Operand:
        """Split the bits of an operand."""
        fraction = bf16.fraction_bits
        return cls(bits[:fraction], bits[fraction : OPERAND_BITS - 1], bits[OPERAND_BITS - 1])

    @property
    def is_zero(self) -> Value:
        """Whether the value is zero: finite codes are above 127."""
        return ~self.exponent[7:].any()

    @property
    def is_special(self) -> Value:
        """Whether the value is infinite or NaN: finite codes are below 448."""
        return self.exponent[6:].all()

    @property
    def is_nan(self) -> Value:
        """Whether the value is NaN."""
        return self.is_special & self.exponent[5]


def recode(m: Module, bits: Value) -> Value:
    """Recode a bf16.

    Combinational. Zero bits give zero bits, so an idle wire carries +0.

    Parameters
    ----------
    m : Module
        Takes the statements.
    bits : Value of 16 bits

    Returns
    -------
    Value of :data:`OPERAND_BITS` bits
        As :class:`Operand` splits them.
    """
    width = bf16.fraction_bits
    fraction, field, sign = bits[:width], bits[width:-1], bits[-1]
    # A subnormal 0.fraction loses its leading zeros and its leading 1.
    zeros = Signal(range(width))
    for position in range(width):
        with m.If(fraction[position]):
            m.d.comb += zeros.eq(width - 1 - position)
    normalised = (fraction << zeros)[: width - 1]

    recoded = Signal(OPERAND_BITS)
    code = Signal(EXPONENT_BITS)
    kept = Signal(width, init=0)
    with m.If(field.all()):
        m.d.comb += code.eq(Mux(fraction.any(), _NAN, _INFINITY))
    with m.Elif(field.any()):
        m.d.comb += [code.eq(field + (EXPONENT_OFFSET - bf16.bias)), kept.eq(fraction)]
    with m.Elif(fraction.any()):
        m.d.comb += [
            code.eq(EXPONENT_OFFSET - bf16.bias - zeros),
            kept.eq(Cat(Const(0, 1), normalised)),
        ]
    m.d.comb += recoded.eq(Cat(kept, code, sign))
    return recoded
