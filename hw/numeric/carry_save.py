"""Sums of many bits by one tree of carry-save adders and one addition."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value

from hw.numeric.wires import named

__all__ = ["Columns", "sum_columns"]

#: Bits to be summed, by their weight.
Columns = list[list[Value]]


def _save_carries(m: Module, columns: Columns, level: int) -> Columns:
    """The same sum with two thirds of the bits, or so."""
    reduced: Columns = [[] for _ in range(len(columns) + 1)]
    for weight, bits in enumerate(columns):
        whole = len(bits) - len(bits) % 3
        for index in range(0, whole, 3):
            x, y, z = bits[index : index + 3]
            place = f"{level}_{weight}_{index}"
            half = named(m, f"half_{place}", x ^ y)
            reduced[weight].append(named(m, f"save_{place}", half ^ z))
            reduced[weight + 1].append(named(m, f"carry_{place}", (x & y) | (half & z)))
        reduced[weight] += bits[whole:]
    return reduced[: len(columns)]


def sum_columns(m: Module, columns: Columns, constant: int) -> Value:
    """The bits of all columns and a constant, modulo 2 to the number of columns.

    Combinational.
    """
    columns = [
        [*bits, Const(1, 1)] if constant >> weight & 1 else bits
        for weight, bits in enumerate(columns)
    ]
    level = 0
    while max(map(len, columns)) > 2:
        columns = _save_carries(m, columns, level)
        level += 1
    first, second = (
        Cat(bits[index] if index < len(bits) else Const(0, 1) for bits in columns)
        for index in range(2)
    )
    return (first + second)[: len(columns)]
