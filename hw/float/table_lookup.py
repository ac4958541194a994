"""Evaluator of piecewise quadratic polynomials from a table, one input per cycle."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Shape, Signal, Value

from hw.lib.delay import delayed
from hw.numeric.table import Table, column_shape

__all__ = ["LOOKUP_CYCLES", "chosen_lookup", "lookup"]

#: Latency of :func:`lookup` in cycles.
LOOKUP_CYCLES = 3


def lookup(m: Module, table: Table, x: Value, name: str) -> Value:
    """Circuit of :meth:`hw.numeric.table.Table.compute`, one input per cycle.

    Returns
    -------
    Value
        After `LOOKUP_CYCLES`, as wide as the largest result needs; it is never negative.
    """
    return chosen_lookup(m, [(table, x)], Const(0, 0), name)


def chosen_lookup(
    m: Module, choices: Sequence[tuple[Table, Value]], choice: Value, name: str
) -> Value:
    """Circuit of :func:`lookup` for several tables, of which the input's cycle chooses one.

    All have the same fraction bits, and share the multipliers.

    Parameters
    ----------
    m : Module
        Takes the statements.
    choices : sequence of table and Value
        Each table with its input.
    choice : Value
        Number of the table; a number without a table chooses the last.
    name : str
        Beginning of the names of signals.
    """
    tables = [table for table, _ in choices]
    columns = _coefficients(m, choices, choice, name)
    # Remainders are fractions of a segment: of shorter ones the low bits are 0.
    bits = max(table.remainder_bits for table in tables)
    kept = max(table.remainder_bits - table.dropped_bits for table in tables)
    r = Signal(bits, name=f"{name}_r", reset_less=True)
    square = Signal(kept, name=f"{name}_quadratic_r", reset_less=True)
    with m.Switch(choice):
        for number, (table, x) in enumerate(choices):
            with m.Default() if number == len(choices) - 1 else m.Case(number):
                remainder, low = x[: table.remainder_bits], table.dropped_bits
                used = table.remainder_bits - low
                m.d.sync += r.eq(remainder << bits - table.remainder_bits)
                m.d.sync += square.eq(remainder[low:] << kept - used)
    c0, c1, c2 = columns
    widest = max(max(table.slopes()) for table in tables)
    slope = Signal(
        Shape(widest.bit_length() + 1, signed=True), name=f"{name}_slope", reset_less=True
    )
    m.d.sync += slope.eq(c1 + (c2 * square >> kept))
    base, r = delayed(m, c0, 1, name=f"{name}_base"), delayed(m, r, 1, name=f"{name}_late_r")
    width = max(max(table.c0) for table in tables).bit_length() + 1
    answer = Signal(width, name=f"{name}_answer", reset_less=True)
    m.d.sync += answer.eq(base + (slope * r >> bits))
    return answer


def _coefficients(
    m: Module, choices: Sequence[tuple[Table, Value]], choice: Value, name: str
) -> list[Value]:
    """Coefficients c0, c1, c2 of the inputs' segments, a cycle later."""
    registers: list[Value] = []
    for number in range(3):
        columns = [(table.c0, table.c1, table.c2)[number] for table, _ in choices]
        shape = Shape(*column_shape([value for column in columns for value in column]))
        read = Signal(shape, name=f"{name}_read_{number}")
        with m.Switch(choice):
            for position, (column, (table, x)) in enumerate(zip(columns, choices, strict=True)):
                with m.Default() if position == len(columns) - 1 else m.Case(position):
                    with m.Switch(x[table.remainder_bits :]):
                        for row, value in enumerate(column[:-1]):
                            with m.Case(row):
                                m.d.comb += read.eq(Const(value, shape))
                        with m.Default():
                            m.d.comb += read.eq(Const(column[-1], shape))
        register = Signal(shape, name=f"{name}_c{number}", reset_less=True)
        m.d.sync += register.eq(read)
        registers.append(register)
    return registers
