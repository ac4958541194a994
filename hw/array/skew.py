"""Delay lines that align the lanes of a vector with a systolic wave."""

from amaranth.hdl import Module, Signal, Value

__all__ = ["delayed"]


def delayed(m: Module, value: Value, cycles: int, *, name: str, reset: bool = False) -> Value:
    """Value of ``cycles`` clock edges ago; data registers have no reset unless ``reset``."""
    for stage in range(cycles):
        register = Signal(len(value), name=f"{name}_{stage + 1}", reset_less=not reset)
        m.d.sync += register.eq(value)
        value = register
    return value
