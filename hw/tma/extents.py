"""Arithmetic of a box's extent: the part of it before a bound, and the steps that it takes."""

from amaranth.hdl import Const, Mux, Value

from hw.arch.descriptor import MAX_BOX, MAX_ELEMENT_STRIDE
from hw.numeric.division import ceil_div

__all__ = ["clamped", "steps_of"]


def clamped(value: Value, limit: Value) -> Value:
    """The signed value, clamped to 0 to limit."""
    return Mux(value < 0, 0, Mux(value > limit, limit, value[: len(limit)]))


def steps_of(extent: Value, step: Value) -> Value:
    """Extent (1 to `MAX_BOX`) by step (1 to `MAX_ELEMENT_STRIDE`), rounded up."""
    # floor(n / d) is n × ceil(2^k / d) / 2^k for n < 2^9 and d ≤ 8 if k ≥ 12.
    fraction = 12
    inverse: Value = Const(0)
    for divisor in range(1, MAX_ELEMENT_STRIDE + 1):
        inverse = Mux(step == divisor, ceil_div(1 << fraction, divisor), inverse)
    return ((extent + step - 1)[: MAX_BOX.bit_length()] * inverse) >> fraction
