"""Adder of a short signed number to a long one; the upper part is an incrementer/decrementer."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value

from hw.float.wires import named

__all__ = ["add_short"]


def add_short(m: Module, total: Value, addend: Value) -> Value:
    """``total + addend``, modulo 2 to the width of ``total``; ``addend`` is two's complement.

    Combinational. The bits above the addend stay, or count up or down by one; which of them
    such a step inverts is known before the carry arrives. So it takes fewer gates than an adder of
    the full width, and is no deeper than an adder of the addend's width.

    Parameters
    ----------
    m : Module
        Takes the statements.
    total : Value
        At least as wide as the addend.
    addend : Value
        Two's complement; the last bit is the sign.
    """
    width = len(addend)
    low = named(m, "low", total[:width] + addend[:width])
    high, sign = total[width:], addend[-1]
    step = named(m, "step", low[-1] ^ sign)
    # Up: a bit is inverted if all below it are 1; down: if all are 0.
    passes = named(m, "passes", high ^ sign.replicate(len(high)))
    inverted: Value = Const(1, 1)
    bits: list[Value] = []
    for index, bit in enumerate(high):
        bits.append(bit ^ (inverted & step))
        inverted = named(m, f"inverted_{index}", inverted & passes[index])
    return Cat(low[:width], *bits)
