"""Format conversions, combinational, bit-identical to :mod:`hw.numeric.elementwise`."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Value

from hw.float.aligned_sum import cast_to_bf16
from hw.float.recode import Coding, is_nan, recode
from hw.float.sticky_shift import shift_right
from hw.float.wires import named
from hw.numeric.formats import Format, bf16, fp32, int8, int32

__all__ = [
    "ceil",
    "from_int8",
    "from_int32",
    "narrow",
    "round_to_integral",
    "saturate_int8",
    "to_int32",
    "widen",
]

_FRACTION = fp32.fraction_bits


def narrow(m: Module, bits: Value, format_: Format, *, saturate: bool) -> Value:
    """Round an fp32 to a shorter float, as :func:`hw.numeric.reference.cast`.

    Parameters
    ----------
    m : Module
        Takes the statements.
    bits : Value of 32 bits
    format_ : Format
        A float of 4, 8 or 16 bits.
    saturate : bool
        Whether values beyond the largest finite one, infinities included, become it; otherwise
        they become infinity, or NaN in a format without infinities. A format without NaN must
        saturate, and NaN becomes its largest value.
    """
    if format_ == bf16:
        rounded = cast_to_bf16(m, bits)
        if not saturate:
            return rounded
        infinite = rounded[:-1] == format_.infinity
        return Cat(Mux(infinite, format_.largest, rounded[:-1])[:15], rounded[-1])
    name = f"to_{format_.name}"
    field = bits[_FRACTION:-1]
    normal = named(m, f"{name}_normal", field.any())
    # 1 minus the result's exponent field; from field 1 down the result is shifted.
    short = named(m, f"{name}_short", fp32.bias - format_.bias + 1 - field)
    subnormal = ~short[-1]
    down = Mux(subnormal, short[:-1], 0)
    significand = Cat(bits[:_FRACTION], normal)
    value, lost = shift_right(m, significand, down, name)
    drop = _FRACTION - format_.fraction_bits
    kept, guard, rest = value[drop:], value[drop - 1], value[: drop - 1]
    up = guard & (kept[0] | rest.any() | lost)
    base = Mux(subnormal, 0, (field - (fp32.bias - format_.bias + 1))[:8])
    total = named(m, f"{name}_total", Cat(Const(0, format_.fraction_bits), base) + kept + up)
    too_large = total > format_.largest
    limit = format_.largest if saturate else format_.largest + 1
    magnitude = Mux(too_large, limit, total)[: format_.bits - 1]
    nan = format_.canonical_nan if format_.has_nan else format_.largest
    return Mux(is_nan(bits), nan, Cat(magnitude, bits[-1]))


def widen(m: Module, bits: Value, format_: Format) -> Value:
    """Exact conversion of a float of 4, 8 or 16 bits to fp32; NaN become canonical."""
    if format_ == bf16:
        return Mux(is_nan(bits, bf16), fp32.canonical_nan, Cat(Const(0, 16), bits))
    coding = Coding.of((fp32,))
    operand = coding.split(recode(m, bits, format_, coding))
    # Every value of these formats is a normal fp32, subnormals included.
    field = (operand.exponent - (coding.offset - fp32.bias))[: fp32.exponent_bits]
    field = Mux(operand.is_special, 0xFF, Mux(operand.is_zero, 0, field))
    wide = Cat(operand.fraction, field, operand.sign)
    return Mux(operand.is_nan, fp32.canonical_nan, wide)


def to_int32(m: Module, bits: Value) -> Value:
    """Round an fp32 to an int32, to nearest even; it saturates, and NaN becomes 0."""
    field = bits[_FRACTION:-1]
    # One bit below the binary point; the exponent that needs no shift is 31.
    aligned = Cat(Const(0, 9), bits[:_FRACTION], field.any())
    distance = fp32.bias + 31 - field
    value, lost = shift_right(m, aligned, distance[:8], "to_int32")
    kept, guard = value[1:], value[0]
    magnitude = (kept + (guard & (kept[0] | lost)))[:31]
    sign = bits[-1]
    result = Mux(sign, -magnitude, magnitude)[:32]
    too_large = field >= fp32.bias + 31
    result = Mux(too_large, int32.largest + sign, result)
    return Mux(is_nan(bits), 0, result)[:32]


def saturate_int8(bits: Value) -> Value:
    """The nearest int8 to an int32."""
    sign = bits[-1]
    fits = ~(bits[int8.bits - 1 : -1] ^ sign.replicate(int32.bits - int8.bits)).any()
    return Mux(fits, bits[: int8.bits], int8.largest + sign)[: int8.bits]


def _normalised(m: Module, bits: Value, name: str) -> tuple[Value, Value]:
    """Magnitude of an integer with its zeros at the high end shifted out, and their number."""
    size = len(bits)
    value: Value = named(m, name, Mux(bits[-1], -bits.as_signed(), bits)[:size])
    zeros: list[Value] = []
    for stage in reversed(range((size - 1).bit_length())):
        places = 1 << stage
        taken = named(m, f"{name}_by_{places}", ~value[-places:].any())
        value = named(m, f"{name}_{places}", Mux(taken, value << places, value)[:size])
        zeros.insert(0, taken)
    return value, Cat(*zeros)


def from_int32(m: Module, bits: Value) -> Value:
    """Round an int32 to fp32, to nearest even; 0 becomes +0."""
    value, zeros = _normalised(m, bits, "from_int32")
    kept, guard, rest = value[8:], value[7], value[:7]
    up = guard & (kept[0] | rest.any())
    # The hidden bit adds 1 to the exponent.
    base = (fp32.bias + 31 - 1 - zeros)[:8]
    magnitude = (Cat(Const(0, _FRACTION), base) + kept + up)[:31]
    return Mux(value[-1], Cat(magnitude, bits[-1]), 0)


def from_int8(m: Module, bits: Value) -> Value:
    """Exact conversion of an int8 to fp32; 0 becomes +0."""
    value, zeros = _normalised(m, bits, "from_int8")
    field = (fp32.bias + 7 - zeros)[:8]
    wide = Cat(Const(0, _FRACTION - 7), value[:7], field, bits[-1])
    return Mux(value[-1], wide, 0)[:32]


def _below_point(m: Module, field: Value) -> Value:
    """Mask of the fraction bits below the binary point, a thermometer code of the exponent."""
    places = [field < fp32.bias + _FRACTION - place for place in range(_FRACTION)]
    return named(m, "below_point", Cat(*places))


def ceil(m: Module, bits: Value) -> Value:
    """The least integer that is not below an fp32; zeros keep their signs, (-1, 0) becomes -0."""
    field, magnitude, positive = bits[_FRACTION:-1], bits[:-1], ~bits[-1]
    mask = _below_point(m, field)
    # A positive fraction, if there is one, carries into the last place above the point.
    raised = named(m, "raised", (magnitude + Mux(positive, mask, 0))[:31])
    total = Cat(raised[:_FRACTION] & ~mask, raised[_FRACTION:])
    small = Cat(Const(0, _FRACTION), Mux(positive & magnitude.any(), fp32.bias, 0)[:8])
    result = Mux(field < fp32.bias, small, total)
    return Mux(is_nan(bits), fp32.canonical_nan, Cat(result, bits[-1]))


def round_to_integral(m: Module, bits: Value) -> Value:
    """Round an fp32 to an integer in fp32, nearest even; zeros keep their signs."""
    field, magnitude = bits[_FRACTION:-1], bits[:-1]
    mask = _below_point(m, field)
    unit = Cat(mask, Const(0, 1)) ^ Cat(Const(1, 1), mask)
    odd = mask[0] & (Cat(bits[:_FRACTION], Const(1, 1)) & unit).any()
    total = (magnitude + (mask >> 1) + odd)[:31]
    total = Cat(total[:_FRACTION] & ~mask, total[_FRACTION:])
    below_one = field < fp32.bias
    to_one = (field == fp32.bias - 1) & bits[:_FRACTION].any()
    small = Cat(Const(0, _FRACTION), Mux(to_one, fp32.bias, 0)[:8])
    result = Mux(below_one, small, total)
    return Mux(is_nan(bits), fp32.canonical_nan, Cat(result, bits[-1]))
