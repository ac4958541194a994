"""Sum of two signed byte products by Booth recoding and one tree of carry-save adders.

Radix 4 halves the partial products; those of both products are summed before any carry is
propagated. (Booth, A signed binary multiplication technique, 1951; MacSorley, 1961.)
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Value

from hw.float.carry_save import Columns, sum_columns
from hw.float.wires import named

__all__ = ["booth_pair"]

_BYTE = 8
_DIGITS = _BYTE // 2
_SUM_BITS = 2 * _BYTE + 1


def _add_product(m: Module, columns: Columns, a: Value, w: Value, name: str) -> None:
    """Add the partial products of two bytes to the columns.

    A row is the multiple 0, 1 or 2 of ``a``, inverted for a negative digit, plus the 1 that an
    inversion lacks. Its sign bit is inverted, which adds an excess of 2^8 · 4^digit per row.
    """
    for digit in range(_DIGITS):
        low = w[2 * digit - 1] if digit else Const(0, 1)
        middle, high = w[2 * digit], w[2 * digit + 1]
        one = named(m, f"{name}_one_{digit}", middle ^ low)
        two = named(m, f"{name}_two_{digit}", (high ^ middle) & ~one)
        once = Cat(a, a[-1]) & one.replicate(_BYTE + 1)
        twice = Cat(Const(0, 1), a) & two.replicate(_BYTE + 1)
        row = (once | twice) ^ Cat(high.replicate(_BYTE), ~high)
        row = named(m, f"{name}_row_{digit}", row)
        for position in range(_BYTE + 1):
            columns[2 * digit + position].append(row[position])
        columns[2 * digit].append(high)


def booth_pair(m: Module, a: Value, w: Value) -> Value:
    """``a[:8] * w[:8] + a[8:] * w[8:]``, all signed, as 17 bits of two's complement.

    Combinational.
    """
    columns: Columns = [[] for _ in range(_SUM_BITS)]
    for index in range(2):
        byte = slice(_BYTE * index, _BYTE * (index + 1))
        _add_product(m, columns, a[byte], w[byte], f"booth_{index}")
    # Excess of the inverted sign bits of all rows.
    excess = 2 * sum(1 << (_BYTE + 2 * digit) for digit in range(_DIGITS))
    return sum_columns(m, columns, -excess)
