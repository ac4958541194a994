"""Scores on their way into the accumulators: masked, with the greatest of each column's block."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.numeric.formats import fp32

__all__ = ["ScoreColumn", "ScoreColumns", "score_layout"]

_MINUS_INFINITY = fp32.infinity | 1 << 31


def score_layout() -> data.StructLayout:
    """Layout of what accompanies a score: it is kept; it begins a tile; its accumulator bank."""
    return data.StructLayout({"enable": 1, "begins": 1, "bank": 1})


class ScoreColumn(Component):
    """Mask and running maximum of one column.

    The maximum begins anew with each tile, so behind a block it is that of its last tile: of the
    whole scores. NaN is no maximum, which sums have only with the canonical bits.

    Members
    -------
    i_control, o_control : ``In``, ``Out(score_layout())``
        What accompanies the sum, and the same for the right neighbour one cycle later.
    i_hidden : ``In(1)``
        The query does not see the key: the score is minus infinity.
    i_sum, o_sum : ``In(32)``, ``Out(32)``
        Sum, and what is stored of it, in the same cycle.
    o_maxima : ``Out(ArrayLayout(32, 2))``
        Maximum of each bank.
    """

    i_control: data.View[data.StructLayout]
    o_control: data.View[data.StructLayout]
    i_hidden: Signal
    i_sum: Signal
    o_sum: Signal
    o_maxima: data.View[data.ArrayLayout]

    def __init__(self) -> None:
        super().__init__(
            {
                "i_control": In(score_layout()),
                "o_control": Out(score_layout()),
                "i_hidden": In(1),
                "i_sum": In(32),
                "o_sum": Out(32),
                "o_maxima": Out(data.ArrayLayout(32, 2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control: Any = self.i_control
        least = Const(_MINUS_INFINITY, 32)
        nan = self.i_sum[fp32.fraction_bits - 1 : 31].all()
        score, old = Signal(32), Signal(32)
        maxima = Array(Signal(32, name=f"maximum_{bank}", reset_less=True) for bank in range(2))
        m.d.comb += [
            self.o_sum.eq(Mux(self.i_hidden, least, self.i_sum)),
            score.eq(Mux(self.i_hidden | nan, least, self.i_sum)),
            old.eq(Mux(control.begins, least, maxima[control.bank])),
            self.o_maxima.as_value().eq(Cat(*maxima)),
        ]
        m.d.sync += self.o_control.eq(self.i_control)
        with m.If(control.enable):
            m.d.sync += maxima[control.bank].eq(Mux(_order(score) > _order(old), score, old))
        return m


def _order(x: Value) -> Value:
    """Bits of an fp32 that is no NaN, as an unsigned number of the same order; -0 is below +0."""
    return Cat(x[:31] ^ x[31].replicate(31), ~x[31])


class ScoreColumns(Component):
    """Masks and running maxima of all columns, column c c cycles after column 0.

    Parameters
    ----------
    columns : int
        Columns C.

    Members
    -------
    i_control : ``In(score_layout())``
        What accompanies the sum of column 0.
    i_hidden : ``In(C)``
        Columns that do not see the key of that sum's row.
    i_sums, o_sums : ``In``, ``Out(ArrayLayout(32, C))``
        Sums, that of column c c cycles later, and what is stored of them, in the same cycle.
    i_bank, o_maxima : ``In(1)``, ``Out(ArrayLayout(32, C))``
        A bank, and its maxima.
    """

    i_control: data.View[data.StructLayout]
    i_hidden: Signal
    i_sums: data.View[data.ArrayLayout]
    o_sums: data.View[data.ArrayLayout]
    i_bank: Signal
    o_maxima: data.View[data.ArrayLayout]

    def __init__(self, columns: int) -> None:
        self._columns = columns
        sums = data.ArrayLayout(32, columns)
        super().__init__(
            {
                "i_control": In(score_layout()),
                "i_hidden": In(columns),
                "i_sums": In(sums),
                "o_sums": Out(sums),
                "i_bank": In(1),
                "o_maxima": Out(sums),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control = self.i_control
        sums: list[Value] = []
        maxima: list[Value] = []
        for index in range(self._columns):
            column = ScoreColumn()
            m.submodules[f"column_{index}"] = shared(column)
            hidden = delayed(m, self.i_hidden[index], index, name=f"hidden_{index}")
            m.d.comb += [
                column.i_control.eq(control),
                column.i_hidden.eq(hidden),
                column.i_sum.eq(self.i_sums[index]),
            ]
            control = column.o_control
            sums.append(column.o_sum)
            maxima.append(Mux(self.i_bank, column.o_maxima[1], column.o_maxima[0]))
        m.d.comb += [
            self.o_sums.as_value().eq(Cat(*sums)),
            self.o_maxima.as_value().eq(Cat(*maxima)),
        ]
        return m
