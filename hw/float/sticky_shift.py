"""Right shifter with a sticky bit."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Value

from hw.float.wires import named

__all__ = ["shift_right"]


def shift_right(m: Module, value: Value, amount: Value, name: str) -> tuple[Value, Value]:
    """The value shifted right by any amount, and whether a 1 was shifted out (sticky bit)."""
    stages = len(value).bit_length()
    lost: Value = Const(0, 1)
    if len(amount) > stages:
        far = amount[stages:].any()
        lost, value = value.any() & far, Mux(far, 0, value)
    for stage in reversed(range(min(stages, len(amount)))):
        places = min(1 << stage, len(value))
        taken = amount[stage]
        lost = lost | (value[:places].any() & taken)
        value = named(m, f"{name}_{stage}", Mux(taken, value[places:], value))
    return value, lost
