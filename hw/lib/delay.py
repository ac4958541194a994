"""Delay line: a value as it was some clock edges ago."""

from __future__ import annotations

from typing import TypeAlias, overload

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data

__all__ = ["delayed"]

_Flags: TypeAlias = "data.View[data.StructLayout]"


@overload
def delayed(m: Module, value: Value, cycles: int, *, name: str, reset: bool = False) -> Value: ...
@overload
def delayed(m: Module, value: _Flags, cycles: int, *, name: str, reset: bool = False) -> _Flags: ...
def delayed(
    m: Module, value: Value | _Flags, cycles: int, *, name: str, reset: bool = False
) -> Value | _Flags:
    """Delay line: ``value`` as it was ``cycles`` clock edges ago, in one wide register.

    The register is without reset unless ``reset``. The result has the value's shape.
    """
    if cycles == 0:
        return value
    bits = Value.cast(value)
    line = Signal(len(bits) * cycles, name=name, reset_less=not reset)
    m.d.sync += line.eq(Cat(bits, line)[: len(line)])
    oldest = line[len(line) - len(bits) :]
    if isinstance(value, data.View):
        return data.View(value.shape(), oldest)
    return oldest.as_signed() if bits.shape().signed else oldest
