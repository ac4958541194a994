"""Evaluator of piecewise quadratic polynomials from a table, one input per cycle."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Shape, Signal, Value

from hw.lib.delay import delayed
from hw.numeric.table import Table, column_shape

__all__ = ["LOOKUP_CYCLES", "lookup"]

#: Latency of :func:`lookup` in cycles.
LOOKUP_CYCLES = 3


def lookup(m: Module, table: Table, x: Value, name: str) -> Value:
    """Circuit of :meth:`hw.numeric.table.Table.compute`, one input per cycle.

    Returns
    -------
    Value
        After `LOOKUP_CYCLES`, as wide as the largest result needs; it is never negative.
    """
    columns = []
    index = x[table.remainder_bits :]
    for number, column in enumerate((table.c0, table.c1, table.c2)):
        shape = Shape(*column_shape(column))
        read = Signal(shape, name=f"{name}_read_{number}")
        with m.Switch(index):
            for row, value in enumerate(column[:-1]):
                with m.Case(row):
                    m.d.comb += read.eq(Const(value, shape))
            with m.Default():
                m.d.comb += read.eq(Const(column[-1], shape))
        kept = Signal(shape, name=f"{name}_c{number}", reset_less=True)
        m.d.sync += kept.eq(read)
        columns.append(kept)
    c0, c1, c2 = columns
    r = delayed(m, x[: table.remainder_bits], 1, name=f"{name}_r")
    widest = max(table.slopes())
    slope = Signal(
        Shape(widest.bit_length() + 1, signed=True), name=f"{name}_slope", reset_less=True
    )
    low = table.dropped_bits
    m.d.sync += slope.eq(c1 + (c2 * r[low:] >> table.remainder_bits - low))
    base, r = delayed(m, c0, 1, name=f"{name}_base"), delayed(m, r, 1, name=f"{name}_r")
    answer = Signal(max(table.c0).bit_length() + 1, name=f"{name}_answer", reset_less=True)
    m.d.sync += answer.eq(base + (slope * r >> table.remainder_bits))
    return answer
