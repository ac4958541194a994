"""Special function unit (SFU) of a lane: four functions of one fp32 on one interpolator."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.arch.limits import FUNCTION_BITS
from hw.float.function_steps import (
    CODING,
    EXPONENT_BASE,
    ROUND_CYCLES,
    decode,
    normalise_bit,
    round_magnitude,
)
from hw.float.sticky_shift import shift_right
from hw.float.table_lookup import LOOKUP_CYCLES, chosen_lookup
from hw.float.wires import named, register
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction
from hw.numeric.function_tables import (
    FULL_WIDTH,
    GUARD,
    argument_bits,
    exp2_table,
    log2_e,
    reciprocal_table,
    rsqrt_table,
)
from hw.numeric.table import Table

__all__ = ["SpecialFunctionUnit"]

#: Bits of a power's whole exponent, and of a code.
_WHOLE = CODING.exponent_bits
#: Exponent of an argument of exp2 whose hidden bit is the second of the whole ones.
_TOP = _WHOLE - 2


class _Scaled(NamedTuple):
    """Significand before its shift to a fixed-point number, and what its exponent makes of it."""

    significand: Value
    distance: Value
    large: Value
    code: Value
    odd: Value
    sign: Value
    inverse: Value
    root: Value
    nan: Value


class _Argument(NamedTuple):
    """Argument of a table, and the exponent of its result but for a constant."""

    fraction: Value
    exponent: Value
    odd: Value
    choice: Value
    sign: Value
    nan: Value


class SpecialFunctionUnit(Component):
    """Special function unit (SFU): 2^x, e^x, 1 / x, 1 / sqrt(x); a function code per argument.

    A new argument each cycle, its result :attr:`latency` cycles later; it never stalls. The bits
    are those of :func:`hw.numeric.functions.special_function`.

    Parameters
    ----------
    function_bits : int
        Significand bits of the result, 12 to 24 (`limits.FUNCTION_BITS`).

    Members
    -------
    i_operation : SpecialFunction
        Function of the argument of the same cycle.
    i_argument : 32 bits
        Argument, an fp32.
    o_result : 32 bits
        Result, an fp32.

    Raises
    ------
    BadInputError
        The significand bits are out of their range.
    """

    i_operation: Signal
    i_argument: Signal
    o_result: Signal

    #: Cycles from an argument to its result.
    latency = 4 + LOOKUP_CYCLES + ROUND_CYCLES

    def __init__(self, function_bits: int) -> None:
        FUNCTION_BITS.require("Function bits", function_bits)
        self._width = function_bits
        self._fraction_bits = argument_bits(function_bits)
        super().__init__(
            {"i_operation": In(SpecialFunction), "i_argument": In(32), "o_result": Out(32)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scale = self._width + GUARD
        argument = self._reduce(m, self._scale(m))
        value = chosen_lookup(m, self._tables(argument), argument.choice, "table")
        value, small = normalise_bit(m, value, scale, "value")
        base = delayed(m, self._base(m, argument), LOOKUP_CYCLES - 1, name="table_base") + ~small
        magnitude = round_magnitude(m, value, scale=scale, base=base, width=self._width)
        later = LOOKUP_CYCLES + ROUND_CYCLES
        sign = delayed(m, argument.sign, later, name="result_sign")
        nan = delayed(m, argument.nan, later, name="result_nan")
        m.d.comb += self.o_result.eq(Mux(nan, fp32.canonical_nan, Cat(magnitude, sign)))
        return m

    def _scale(self, m: Module) -> _Scaled:
        """Multiply by log2(e) for e^x. Two cycles after the unit's inputs."""
        operand = decode(m, self.i_argument)
        operation = delayed(m, self.i_operation, 1, name="operation")
        natural = operation == SpecialFunction.EXP
        root = named(m, "root", operation == SpecialFunction.RSQRT)
        inverse = named(m, "inverse", root | (operation == SpecialFunction.RECIPROCAL))
        bits = self._fraction_bits + _WHOLE
        significand = Cat(operand.fraction, Const(1, 1))
        product = significand * log2_e(self._width)
        up = self._fraction_bits + _TOP - fp32.fraction_bits
        plain = Cat(Const(0, up), significand) if up >= 0 else significand[-up:]
        # Of a normalised significand of fewer bits, a shift by _TOP leaves the fraction in place.
        distance = named(m, "distance", CODING.offset + _TOP - operand.exponent)
        near = distance[: bits.bit_length()]
        far = distance[bits.bit_length() : _WHOLE].any()
        # An infinite argument has the code of NaN, which is far below every other result.
        infinite = operand.is_special.shift_left(CODING.special - 1)
        scaled = _Scaled(
            significand=Mux(natural, product[FULL_WIDTH:], plain)[:bits],
            distance=Mux(inverse, _TOP, near | far.replicate(len(near))),
            large=distance[-1] & ~inverse,
            code=Mux(
                root & ~operand.is_special, operand.exponent >> 1, operand.exponent | infinite
            ),
            odd=operand.exponent[0],
            sign=operand.sign,
            inverse=inverse,
            root=root,
            nan=operand.is_nan | (root & operand.sign & ~operand.is_zero),
        )
        return register(m, scaled, "scaled")

    def _reduce(self, m: Module, scaled: _Scaled) -> _Argument:
        """Argument reduction. Two cycles after `scaled`.

        A power splits into the whole and the fraction of its exponent; an inverse has both from
        its argument, the whole as a code.
        """
        below = self._fraction_bits
        moved, _ = shift_right(m, scaled.significand, scaled.distance, "split")
        moved = named(m, "fixed", moved | scaled.large.replicate(len(moved)))
        whole = Mux(scaled.inverse, scaled.code, moved[below:])
        fixed = delayed(m, Cat(moved[:below], whole), 1, name="split_fixed")
        late = delayed(
            m,
            Cat(scaled.inverse, scaled.root, scaled.odd, scaled.sign, scaled.nan),
            1,
            name="split_flags",
        )
        inverse, root, odd, sign, nan = late
        negative = named(m, "negative", sign & ~inverse)
        inverted = Cat(negative.replicate(below), (negative | inverse).replicate(_WHOLE + 1))
        signed = named(
            m, "signed", ((Cat(fixed, Const(0, 1)) ^ inverted) + negative)[: len(inverted)]
        )
        argument = _Argument(
            fraction=signed[:below],
            exponent=signed[below:].as_signed(),
            odd=odd,
            choice=Cat(inverse & ~root, root),
            sign=sign & inverse,
            nan=nan,
        )
        return register(m, argument, "argument")

    def _tables(self, argument: _Argument) -> list[tuple[Table, Value]]:
        """Tables in the order of `_Argument.choice`, with their inputs."""
        power, inverse = exp2_table(self._width), reciprocal_table(self._width)
        root = rsqrt_table(self._width)
        return [
            (power, argument.fraction),
            (inverse, argument.fraction[-inverse.input_bits :]),
            (root, Cat(argument.fraction[-(root.input_bits - 1) :], argument.odd)),
        ]

    def _base(self, m: Module, argument: _Argument) -> Value:
        """Base of the result's exponent, less one if its value is at least 1. A cycle later."""
        # An inverse's exponent is inverted, which is one less than negated.
        offset = Signal(range(512), name="offset")
        with m.Switch(argument.choice):
            with m.Case(0):
                m.d.comb += offset.eq(EXPONENT_BASE - 1)
            with m.Case(1):
                m.d.comb += offset.eq(EXPONENT_BASE + CODING.offset)
            with m.Default():
                m.d.comb += offset.eq(EXPONENT_BASE + CODING.offset // 2)
        base: Value = delayed(m, (argument.exponent + offset)[:11].as_signed(), 1, name="base")
        return base
