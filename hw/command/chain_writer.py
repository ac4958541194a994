"""Chain writer of the command processor: words of an image to the rows' configuration chains."""

from __future__ import annotations

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.image import MAX_ROW_BEATS
from hw.lib.component import Component

__all__ = ["ChainWriter"]


class ChainWriter(Component):
    """Chain writer: shifts the words of an image into the rows' configuration chains, row by row.

    One word per cycle, latency one cycle.

    Parameters
    ----------
    width_bits : int
        Width of a word.
    rows : int
        Rows of the fabric, each with a chain.

    Members
    -------
    i_start : ``In(1)``
        Begins with the first word of row 0.
    i_words : ``In(ArrayLayout(range(MAX_ROW_BEATS + 1), rows))``
        Words per row, at least 1; constant from ``i_start`` to the last word.
    i_valid, i_data : ``In(1)``, ``In(width_bits)``
        The next word.
    o_end : ``Out(1)``
        The next word is the last one of the last row.
    o_shift, o_data : ``Out(rows)``, ``Out(width_bits)``
        Word for the chain of the one row whose bit is set.
    """

    i_start: Signal
    i_words: data.View[data.ArrayLayout]
    i_valid: Signal
    i_data: Signal
    o_end: Signal
    o_shift: Signal
    o_data: Signal

    def __init__(self, *, width_bits: int, rows: int) -> None:
        self._rows = rows
        super().__init__(
            {
                "i_start": In(1),
                "i_words": In(data.ArrayLayout(range(MAX_ROW_BEATS + 1), rows)),
                "i_valid": In(1),
                "i_data": In(width_bits),
                "o_end": Out(1),
                "o_shift": Out(rows),
                "o_data": Out(width_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = Array(self.i_words[each] for each in range(self._rows))
        row = Signal(range(self._rows))
        following = Signal(range(self._rows + 1))
        left = Signal.like(self.i_words[0])
        row_ends = left == 1
        m.d.comb += [
            following.eq(row + 1),
            self.o_end.eq(row_ends & (following == self._rows)),
        ]
        m.d.sync += self.o_shift.eq(0)
        with m.If(self.i_valid):
            m.d.sync += [
                self.o_shift.eq(Const(1) << row),
                self.o_data.eq(self.i_data),
                left.eq(left - 1),
            ]
            with m.If(row_ends):
                m.d.sync += [row.eq(following), left.eq(words[following])]
        with m.If(self.i_start):
            m.d.sync += [row.eq(0), left.eq(self.i_words[0])]
        return m
