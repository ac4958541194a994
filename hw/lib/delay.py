"""Delay line: a value as it was some clock edges ago."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data

__all__ = ["delayed"]


def delayed(m: Module, value: Any, cycles: int, *, name: str, reset: bool = False) -> Any:
    """Value, of the same shape, as it was ``cycles`` clock edges ago, in one wide register.

    The register is without reset unless ``reset``.
    """
    if not cycles:
        return value
    bits = Value.cast(value)
    line = Signal(len(bits) * cycles, name=name, reset_less=not reset)
    m.d.sync += line.eq(Cat(bits, line)[: len(line)])
    # Of the register alone: a slice of `Cat(bits, line)` nests as deep as a chain of lines is long.
    oldest = line[-len(bits) :]
    if isinstance(value, data.View):
        return data.View(value.shape(), oldest)
    return oldest.as_signed() if bits.shape().signed else oldest
