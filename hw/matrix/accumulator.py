"""Accumulator RAMs of a matrix unit: one or more banks of partial sums below each array column."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.array.unit_parameters import ACCUMULATOR_ROWS
from hw.emit.shared import shared
from hw.emit.vector_memory import VectorMemory
from hw.lib.component import Component

__all__ = ["AccumulatorColumn", "Accumulators", "access_layout"]


def access_layout(rows: int, banks: int) -> data.StructLayout:
    """Layout of an access to a row of partial sums, of one of the banks."""
    return data.StructLayout({"enable": 1, "bank": range(banks), "row": range(rows)})


def _drain_members(rows: int, banks: int, sums: data.ArrayLayout | int) -> dict[str, wiring.Member]:
    """Members of the drain, with two banks or more."""
    layout = data.StructLayout({"active": 1, "access": access_layout(rows, banks)})
    return {"i_drain": In(layout), "o_drained": Out(sums)} if banks > 1 else {}


class AccumulatorColumn(Component):
    """Accumulator RAM of one column: banks with one read and one write port each.

    A read of a row in the cycle of its write gives the old sum. The accesses of the array pass to
    the right neighbour one cycle later, in step with the array's wavefront. With two banks or more,
    one that is full is drained through its read port while the array uses another.

    Parameters
    ----------
    rows : int
        Partial sums per bank.
    banks : int
        Banks, at least 1.

    Members
    -------
    i_read, o_old
        Row to read; its partial sum one cycle later, or 0 if not enabled.
    i_write, i_sum
        Row to write, and its partial sum.
    o_read, o_write
        Accesses for the right neighbour.
    i_drain, o_drained
        Only with two banks or more. While ``active`` the bank belongs to the drain. A partial sum
        follows one cycle after an enabled ``access`` and holds its value until the next.
    """

    i_read: data.View[data.StructLayout]
    o_old: Signal
    i_write: data.View[data.StructLayout]
    i_sum: Signal
    o_read: data.View[data.StructLayout]
    o_write: data.View[data.StructLayout]
    i_drain: data.View[data.StructLayout]
    o_drained: Signal

    def __init__(self, *, rows: int, banks: int) -> None:
        ACCUMULATOR_ROWS.require(rows)
        self._rows, self._banks = rows, banks
        access = access_layout(rows, banks)
        super().__init__(
            {f"i_{name}": In(access) for name in ("read", "write")}
            | {f"o_{name}": Out(access) for name in ("read", "write")}
            | {"i_sum": In(32), "o_old": Out(32)}
            | _drain_members(rows, banks, 32)
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        old = []
        for index in range(self._banks):
            bank = VectorMemory(width=32, depth=self._rows, granule=32)
            m.submodules[f"bank_{index}"] = shared(bank)
            old.append(bank.o_data)
            m.d.comb += [
                bank.i_write.eq(self.i_write.enable & (self.i_write.bank == index)),
                bank.i_write_address.eq(self.i_write.row),
                bank.i_data.eq(self.i_sum),
                bank.i_read.eq(1),
                bank.i_read_address.eq(self.i_read.row),
            ]
            if self._banks > 1:
                drain = self.i_drain.access
                with m.If(self.i_drain.active & (drain.bank == index)):
                    m.d.comb += [
                        bank.i_read.eq(drain.enable),
                        bank.i_read_address.eq(drain.row),
                    ]
        used: Any = Signal(self.i_read.shape(), reset_less=True)
        m.d.sync += [used.eq(self.i_read), self.o_write.eq(self.i_write)]
        sums: Array[Value] = Array(old)
        m.d.comb += [
            self.o_read.eq(used),
            self.o_old.eq(Mux(used.enable, sums[used.bank], 0)),
        ]
        if self._banks > 1:
            m.d.comb += self.o_drained.eq(sums[self.i_drain.access.bank])
        return m


class Accumulators(Component):
    """Accumulator RAMs of all columns: one access serves a row, column c of it c cycles later.

    Parameters
    ----------
    columns, rows, banks : int
        Columns of the array; the others as of :class:`AccumulatorColumn`.

    Members
    -------
    i_read, o_old
        Row to read; the partial sum of column c 1 + c cycles later, or 0 if not enabled.
    i_write, i_sums
        Row to write, and its partial sums, that of column c c cycles later.
    i_drain, o_drained
        Only with two banks or more, as of :class:`AccumulatorColumn`: all columns at once.
    """

    i_read: data.View[data.StructLayout]
    o_old: data.View[data.ArrayLayout]
    i_write: data.View[data.StructLayout]
    i_sums: data.View[data.ArrayLayout]
    i_drain: data.View[data.StructLayout]
    o_drained: data.View[data.ArrayLayout]

    def __init__(self, *, columns: int, rows: int, banks: int) -> None:
        self._columns, self._rows, self._banks = columns, rows, banks
        access, sums = access_layout(rows, banks), data.ArrayLayout(32, columns)
        super().__init__(
            {"i_read": In(access), "o_old": Out(sums), "i_write": In(access), "i_sums": In(sums)}
            | _drain_members(rows, banks, sums)
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        read, write = self.i_read, self.i_write
        columns = [
            AccumulatorColumn(rows=self._rows, banks=self._banks) for _ in range(self._columns)
        ]
        for index, column in enumerate(columns):
            m.submodules[f"column_{index}"] = shared(column)
            m.d.comb += [
                column.i_read.eq(read),
                column.i_write.eq(write),
                column.i_sum.eq(self.i_sums[index]),
            ]
            if self._banks > 1:
                m.d.comb += column.i_drain.eq(self.i_drain)
            read, write = column.o_read, column.o_write
        m.d.comb += self.o_old.eq(Cat(*(column.o_old for column in columns)))
        if self._banks > 1:
            m.d.comb += self.o_drained.eq(Cat(*(column.o_drained for column in columns)))
        return m
