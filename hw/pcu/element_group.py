"""Selection of a group of elements from a vector, widened to 32 bits."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from hw.arch.lanes.phase_word import ElementForm
from hw.float.convert import from_int8, widen
from hw.float.wires import named
from hw.lib.mux_tree import numbered
from hw.numeric.formats import bf16

__all__ = ["as_many", "element_group"]


def as_many(form: Value, lower: Value) -> Value:
    """Form of which a vector has as many elements, where it has bf16 in its ``lower`` half only."""
    return Mux(lower & (form == ElementForm.BF16.value), ElementForm.WORD.value, form)


def element_group(
    m: Module, vector: Value, form: Any, group: Value, *, count: int, name: str
) -> list[Value]:
    """Elements ``group * count`` to ``group * count + count - 1`` of a vector, widened.

    Combinational.

    Parameters
    ----------
    m : Module
        Takes the statements.
    vector : Value of W bits
    form : ElementForm
        Form of its elements.
    group : Value
        Number of the group.
    count : int
        Elements of a group, a power of two, at most W/32.
    name : str
        Beginning of the names of signals.

    Returns
    -------
    list of Value of 32 bits
    """
    code = Value.cast(form)
    bits = 32 * count
    parts = [vector[low : low + bits] for low in range(0, len(vector), bits)]
    part_bits = (len(parts) - 1).bit_length()
    # Two groups of bf16, four of int8, lie in the bits of one of words.
    number = Signal(range(max(2, 4 * len(parts))), name=f"{name}_number")
    m.d.comb += number.eq(group)
    is_bf16, is_int8 = code == ElementForm.BF16.value, code[1]
    index = Mux(is_int8, number[2:], Mux(is_bf16, number[1:], number))[: max(1, part_bits)]
    part = named(m, f"{name}_part", numbered(index, parts))
    half = named(m, f"{name}_half", Mux(number[0], part[bits // 2 :], part[: bits // 2]))
    quarters = [part[low : low + bits // 4] for low in range(0, bits, bits // 4)]
    quarter = named(m, f"{name}_quarter", numbered(number[:2], quarters))
    elements: list[Value] = []
    for lane in range(count):
        byte = quarter[8 * lane : 8 * lane + 8]
        number_of_byte = Cat(byte, byte[-1].replicate(24))
        wide = Mux(
            is_int8,
            Mux(code[0], from_int8(m, byte), number_of_byte),
            Mux(
                is_bf16,
                widen(m, half[16 * lane : 16 * lane + 16], bf16),
                part[32 * lane : 32 * lane + 32],
            ),
        )
        elements.append(named(m, f"{name}_{lane}", wide[:32]))
    return elements
