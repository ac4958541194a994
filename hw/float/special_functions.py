"""Special function units: one fp32 per cycle, bit-identical to :mod:`hw.numeric.functions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.arch.limits import FUNCTION_WIDTH
from hw.float.function_steps import (
    CODING,
    EXPONENT_BASE,
    POWER_CYCLES,
    ROUND_CYCLES,
    Power,
    build_power,
    decode,
    multiplied_split_cycles,
    normalise_bit,
    round_magnitude,
    split,
)
from hw.float.recode import is_nan
from hw.float.sticky_shift import shift_right
from hw.float.table_lookup import LOOKUP_CYCLES, lookup
from hw.float.wires import named
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.numeric.formats import fp32
from hw.numeric.function_tables import (
    FULL_WIDTH,
    GUARD,
    log2_table,
    reciprocal_table,
    rsqrt_table,
    tanh_table,
)

__all__ = [
    "UNITS",
    "ExponentialUnit",
    "FunctionUnit",
    "Log2Unit",
    "ReciprocalUnit",
    "RsqrtUnit",
    "SigmoidUnit",
    "TanhUnit",
]

_FRACTION = fp32.fraction_bits


class FunctionUnit(Component):
    """Special function unit (SFU): one function of one fp32, pipelined; it never stalls.

    Parameters
    ----------
    name : str
        Name of the function.
    width : int
        Significand bits of the result, 4 to 24.
    cycles : int
        Latency from ``x`` to its result at ``o``.

    Members
    -------
    x, o : 32 bits
        Argument and result.
    """

    x: Signal
    o: Signal

    def __init__(self, name: str, width: int, cycles: int) -> None:
        FUNCTION_WIDTH.require("Function width", width)
        self._name = name
        self._width = width
        self._cycles = cycles
        super().__init__({"x": In(32), "o": Out(32)})

    @property
    def cycles(self) -> int:
        """Latency in cycles from an argument to its result."""
        return self._cycles

    def answer(self, m: Module, magnitude: Value, sign: Value, nan: Value) -> None:
        """Output a magnitude of 31 bits and a sign, or the canonical NaN."""
        m.d.comb += self.o.eq(Mux(nan, fp32.canonical_nan, Cat(magnitude, sign)))


class ExponentialUnit(FunctionUnit):
    """Special function unit for 2^x or e^x.

    Parameters
    ----------
    natural : bool
        Whether the base is e.
    width : int
        As of :class:`FunctionUnit`.
    """

    def __init__(self, *, natural: bool, width: int = FULL_WIDTH) -> None:
        self._natural = natural
        cycles = multiplied_split_cycles(natural) + POWER_CYCLES + ROUND_CYCLES
        super().__init__("exp" if natural else "exp2", width, cycles)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sign = delayed(m, self.x[-1], multiplied_split_cycles(self._natural), name="sign")
        fixed = split(m, self.x, self._width, multiplied=self._natural)
        power = build_power(m, fixed, sign, self._width)
        magnitude = round_magnitude(
            m,
            power.value,
            scale=self._width + GUARD,
            base=power.exponent + EXPONENT_BASE,
            width=self._width,
        )
        self.answer(m, magnitude, Const(0, 1), delayed(m, is_nan(self.x), self.cycles, name="nan"))
        return m


class ReciprocalUnit(FunctionUnit):
    """Special function unit for 1 / x; parameters as of :class:`FunctionUnit`."""

    def __init__(self, *, width: int = FULL_WIDTH) -> None:
        super().__init__("reciprocal", width, 1 + LOOKUP_CYCLES + ROUND_CYCLES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scale = self._width + GUARD
        operand = decode(m, self.x)
        table = reciprocal_table(self._width)
        value = lookup(m, table, operand.fraction[_FRACTION - table.input_bits :], "reciprocal")
        value, small = normalise_bit(m, value, scale, "reciprocal")
        code = delayed(m, operand.exponent, LOOKUP_CYCLES, name="code")
        base = CODING.offset + EXPONENT_BASE - code - small
        magnitude = round_magnitude(m, value, scale=scale, base=base.as_signed(), width=self._width)
        rest = self.cycles - 1
        zero = delayed(m, operand.is_zero, rest, name="zero")
        infinite = delayed(m, operand.is_special, rest, name="infinite")
        magnitude = Mux(zero, fp32.infinity, Mux(infinite, 0, magnitude))
        sign = delayed(m, operand.sign, rest, name="sign")
        self.answer(m, magnitude[:31], sign, delayed(m, operand.is_nan, rest, name="nan"))
        return m


class RsqrtUnit(FunctionUnit):
    """Special function unit for 1 / sqrt(x); parameters as of :class:`FunctionUnit`."""

    def __init__(self, *, width: int = FULL_WIDTH) -> None:
        super().__init__("rsqrt", width, 1 + LOOKUP_CYCLES + ROUND_CYCLES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scale = self._width + GUARD
        operand = decode(m, self.x)
        table = rsqrt_table(self._width)
        fraction = operand.fraction[_FRACTION + 1 - table.input_bits :]
        value = lookup(m, table, Cat(fraction, operand.exponent[0]), "rsqrt")
        value, small = normalise_bit(m, value, scale, "rsqrt")
        half = delayed(m, operand.exponent[1:], LOOKUP_CYCLES, name="code")
        base = CODING.offset // 2 + EXPONENT_BASE - half - small
        magnitude = round_magnitude(
            m,
            value,
            scale=scale,
            base=base.as_signed(),
            width=self._width,
            subnormal=False,
        )
        rest = self.cycles - 1
        zero = delayed(m, operand.is_zero, rest, name="zero")
        infinite = delayed(m, operand.is_special, rest, name="infinite")
        nan = delayed(m, operand.is_nan | (operand.sign & ~operand.is_zero), rest, name="nan")
        magnitude = Mux(zero, fp32.infinity, Mux(infinite, 0, magnitude))
        self.answer(m, magnitude[:31], delayed(m, operand.sign, rest, name="sign"), nan)
        return m


class Log2Unit(FunctionUnit):
    """Special function unit for the base-2 logarithm; parameters as of :class:`FunctionUnit`."""

    #: Cycles from the table's output to a sum with its leading zeros shifted out.
    _SUM_CYCLES = 3

    def __init__(self, *, width: int = FULL_WIDTH) -> None:
        super().__init__("log2", width, 1 + LOOKUP_CYCLES + self._SUM_CYCLES + ROUND_CYCLES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scale = self._width + GUARD + FULL_WIDTH
        operand = decode(m, self.x)
        table = log2_table(self._width)
        upper = operand.fraction[-1]
        ratio = lookup(m, table, operand.fraction[_FRACTION - table.input_bits :], "log2")
        distance = Mux(upper, (1 << _FRACTION) - operand.fraction, operand.fraction << 1)
        distance = delayed(m, distance[: _FRACTION + 1], LOOKUP_CYCLES, name="distance")
        product = delayed(m, distance * ratio, 1, name="product")
        upper = delayed(m, upper, LOOKUP_CYCLES + 1, name="upper")
        whole = delayed(m, operand.exponent, LOOKUP_CYCLES + 1, name="code") - CODING.offset + upper
        total = Cat(Const(0, scale), whole).as_signed() + Mux(upper, -product, product)
        total = delayed(m, total[: scale + 9].as_signed(), 1, name="total")
        negative = total[-1]
        magnitude = named(m, "absolute", Mux(negative, -total, total)[: scale + 8])
        zero = delayed(m, ~magnitude.any(), 1 + ROUND_CYCLES, name="is_one")
        value, zeros = self._normalise(m, magnitude)
        value = delayed(m, value, 1, name="normalised")
        exponent = delayed(m, 7 - zeros, 1, name="log2_exponent")
        rounded = round_magnitude(
            m,
            value,
            scale=len(value) - 1,
            base=exponent + EXPONENT_BASE,
            width=self._width,
            subnormal=False,
        )
        rest = self.cycles - 1
        pole = delayed(m, operand.is_zero, rest, name="zero")
        infinite = delayed(m, operand.is_special, rest, name="infinite")
        nan = delayed(m, operand.is_nan | (operand.sign & ~operand.is_zero), rest, name="nan")
        sign = delayed(m, negative, 1 + ROUND_CYCLES, name="log2_sign")
        rounded = Mux(pole | infinite, fp32.infinity, Mux(zero, 0, rounded))
        sign = pole | (sign & ~infinite & ~zero)
        self.answer(m, rounded[:31], sign, nan)
        return m

    def _normalise(self, m: Module, value: Value) -> tuple[Value, Value]:
        """Normalisation shift; bits below the result's precision collect in the lowest bit."""
        zeros: list[Value] = []
        for stage in reversed(range(len(value).bit_length())):
            places = 1 << stage
            if places >= len(value):
                continue
            taken = named(m, f"zeros_{places}", ~value[-places:].any())
            value = Mux(taken, value << places, value)[: len(value)]
            zeros.insert(0, taken)
            excess = len(value) - (self._width + 2 + places)
            if excess > 0:
                value = Cat(value[:excess].any(), value[excess:])
            value = named(m, f"without_{places}", value)
        return value, Cat(*zeros)


def _decay(m: Module, x: Value, width: int, *, doubled: bool) -> tuple[Power, Value, Value]:
    """e^-|x| or, doubled, e^-2|x|: as a float, in fixed point rounded down, and 1 / (1 + it).

    Takes ``_DECAY_CYCLES`` cycles.
    """
    scale = width + GUARD
    fixed = split(m, x, width, multiplied=True, doubled=doubled)
    power = build_power(m, fixed, Const(1, 1), width)
    down = (-power.exponent)[:10]
    moved, _ = shift_right(m, power.value[: scale + 1], down, "decay")
    moved = delayed(m, moved, 1, name="decay_fixed")
    table = reciprocal_table(width, rounded=True)
    # A power of exactly 1 lies one beyond the table; it uses the last entry.
    one = moved[scale]
    argument = moved[scale - table.input_bits : scale] | one.replicate(table.input_bits)
    inverse = lookup(m, table, argument, "inverse")
    later = 1 + LOOKUP_CYCLES
    power = Power(
        delayed(m, power.value, later, name="power_value"),
        delayed(m, power.exponent, later, name="exponent"),
    )
    return power, delayed(m, moved, LOOKUP_CYCLES, name="power_fixed"), inverse


_DECAY_CYCLES = multiplied_split_cycles(True) + POWER_CYCLES + 1 + LOOKUP_CYCLES


class SigmoidUnit(FunctionUnit):
    """Special function unit for 1 / (1 + e^-x); parameters as of :class:`FunctionUnit`."""

    def __init__(self, *, width: int = FULL_WIDTH) -> None:
        super().__init__("sigmoid", width, _DECAY_CYCLES + 1 + ROUND_CYCLES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scale = self._width + GUARD
        power, _, inverse = _decay(m, self.x, self._width, doubled=False)
        negative = delayed(m, self.x[-1], _DECAY_CYCLES, name="negative")
        product = Mux(negative, power.value, 1 << scale) * inverse
        product = delayed(m, product[: 2 * scale + 1], 1, name="product")
        exponent = delayed(m, Mux(negative, power.exponent, 0), 1, name="product_exponent")
        value, small = normalise_bit(m, product, 2 * scale, "product")
        magnitude = round_magnitude(
            m, value, scale=2 * scale, base=exponent - small + EXPONENT_BASE, width=self._width
        )
        self.answer(m, magnitude, Const(0, 1), delayed(m, is_nan(self.x), self.cycles, name="nan"))
        return m


class TanhUnit(FunctionUnit):
    """Special function unit for the hyperbolic tangent; parameters as of :class:`FunctionUnit`."""

    def __init__(self, *, width: int = FULL_WIDTH) -> None:
        super().__init__("tanh", width, _DECAY_CYCLES + 1 + ROUND_CYCLES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scale = self._width + GUARD
        _, power, inverse = _decay(m, self.x, self._width, doubled=True)

        # Below 1: the argument times a table of the ratio.
        operand = decode(m, self.x)
        table = tanh_table(self._width)
        exact = Cat(operand.fraction, Const(1, 1))
        up = table.input_bits - _FRACTION
        fixed = Cat(Const(0, up), exact) if up >= 0 else exact[-up:]
        down = (CODING.offset - operand.exponent)[: CODING.exponent_bits]
        small = named(m, "small", operand.exponent < CODING.offset)
        argument, _ = shift_right(m, fixed, down, "argument")
        argument = delayed(m, Mux(small, argument, 0)[: table.input_bits], 1, name="argument")
        ratio = lookup(m, table, argument, "ratio")
        early = 2 + LOOKUP_CYCLES
        ratio = delayed(m, ratio, _DECAY_CYCLES - early, name="ratio")
        wait = _DECAY_CYCLES - 1
        is_small = delayed(m, small, wait, name="is_small")
        significand: Value = delayed(m, exact, wait, name="exact")
        code = delayed(m, operand.exponent, wait, name="code")
        wider = scale - _FRACTION
        significand = Cat(Const(0, wider), significand) if wider >= 0 else significand[-wider:]

        first = Mux(is_small, significand, (1 << scale) - power)[: scale + 1]
        product = first * Mux(is_small, ratio, inverse)
        product = delayed(m, product[: 2 * scale + 2], 1, name="product")
        exponent = Mux(is_small, (code - CODING.offset).as_signed(), 0)
        exponent = delayed(m, exponent, 1, name="product_exponent")
        value, halved = normalise_bit(m, product, 2 * scale, "product")
        magnitude = round_magnitude(
            m, value, scale=2 * scale, base=exponent - halved + EXPONENT_BASE, width=self._width
        )
        rest = self.cycles - 1
        zero = delayed(m, operand.is_zero, rest, name="zero")
        sign = delayed(m, operand.sign, rest, name="sign")
        nan = delayed(m, operand.is_nan, rest, name="nan")
        self.answer(m, Mux(zero, 0, magnitude), sign, nan)
        return m


#: Special function unit of each function, made with a width: ``UNITS["exp2"](width=24)``.
UNITS: Mapping[str, Callable[..., FunctionUnit]] = MappingProxyType(
    {
        "exp": partial(ExponentialUnit, natural=True),
        "exp2": partial(ExponentialUnit, natural=False),
        "log2": Log2Unit,
        "reciprocal": ReciprocalUnit,
        "rsqrt": RsqrtUnit,
        "sigmoid": SigmoidUnit,
        "tanh": TanhUnit,
    }
)
