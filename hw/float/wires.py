"""Names and registers for intermediate values of arithmetic."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from amaranth.hdl import Module, Signal, Value

__all__ = ["named", "register"]

Bundle = TypeVar("Bundle", bound=NamedTuple)


def named(m: Module, name: str, value: Value) -> Signal:
    """Named signal of a value, so that the Verilog has one copy of it, with a name."""
    signal = Signal.like(value, name=name)
    m.d.comb += signal.eq(value)
    return signal


def register(m: Module, bundle: Bundle, name: str) -> Bundle:
    """Delay every value of a named tuple by one cycle; data registers have no reset."""
    delayed = []
    for field, value in zip(bundle._fields, bundle, strict=True):
        copy = Signal.like(value, name=f"{name}_{field}", reset_less=True)
        m.d.sync += copy.eq(value)
        delayed.append(copy)
    return bundle._replace(**dict(zip(bundle._fields, delayed, strict=True)))
