"""Right shifter with a sticky bit."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Value

from hw.float.wires import named

__all__ = ["shift_right"]


def shift_right(m: Module, value: Value, amount: Value, name: str) -> tuple[Value, Value]:
    """The value shifted right by any amount, and whether a 1 was shifted out (sticky bit)."""
    stages = len(value).bit_length()
    far = amount[stages:].any()
    lost: Value = value.any() & far
    value = Mux(far, 0, value)
    for stage in reversed(range(min(stages, len(amount)))):
        places = min(1 << stage, len(value))
        taken = amount[stage]
        lost = lost | (value[:places].any() & taken)
        value = named(m, f"{name}_{stage}", Mux(taken, value[places:], value))
    return value, lost
