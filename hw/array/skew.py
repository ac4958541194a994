"""Delay lines that skew and de-skew the lanes of a vector."""

from amaranth.hdl import Module, Signal, Value

__all__ = ["delayed"]


def delayed(m: Module, value: Value, cycles: int, *, name: str, reset: bool = False) -> Value:
    """Delay line: the value ``cycles`` clock edges ago; without reset unless ``reset``."""
    for stage in range(cycles):
        register = Signal(len(value), name=f"{name}_{stage + 1}", reset_less=not reset)
        m.d.sync += register.eq(value)
        value = register
    return value
