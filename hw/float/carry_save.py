"""Multi-operand addition by one Dadda tree of carry-save adders and one carry-propagate adder.

(Dadda, Some schemes for parallel multipliers, 1965: each level reduces as little as possible.)
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value

from hw.float.wires import named

__all__ = ["Columns", "sum_columns"]

#: Bits to be summed, by their weight.
Columns = list[list[Value]]


def _save_carries(m: Module, columns: Columns, most: int) -> Columns:
    """Equal sum with at most so many bits per column, modulo 2 to the number of columns."""
    reduced: Columns = []
    carries: list[Value] = []
    for weight, bits in enumerate(columns):
        left, carries_here, carries = list(bits), carries, []
        while (excess := len(left) + len(carries_here) - most) > 0:
            place = f"{most}_{weight}_{len(carries)}"
            half = named(m, f"half_{place}", left[0] ^ left[1])
            if excess == 1:
                carries.append(named(m, f"carry_{place}", left[0] & left[1]))
                left = [*left[2:], half]
            else:
                carry = (left[0] & left[1]) | (half & left[2])
                carries.append(named(m, f"carry_{place}", carry))
                left = [*left[3:], named(m, f"save_{place}", half ^ left[2])]
        reduced.append(left + carries_here)
    return reduced


def sum_columns(m: Module, columns: Columns, constant: int) -> Value:
    """Sum of the bits of all columns and a constant, modulo 2 to the number of columns.

    Combinational.
    """
    columns = [
        [*bits, Const(1, 1)] if constant >> weight & 1 else bits
        for weight, bits in enumerate(columns)
    ]
    # Dadda's sequence: the column heights that so many levels of 3-to-2 reduction can handle.
    levels = [2]
    while levels[-1] < max(map(len, columns)):
        levels.append(levels[-1] * 3 // 2)
    for most in reversed(levels[:-1]):
        columns = _save_carries(m, columns, most)
    first, second = (
        Cat(bits[index] if index < len(bits) else Const(0, 1) for bits in columns)
        for index in range(2)
    )
    return (first + second)[: len(columns)]
