"""Layouts of a stationary tile in a stream: one column per vector, or whole rows per vector."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.arch.errors import BadInputError
from hw.array.dataflow import ArrayConfig
from hw.lib.component import Component

__all__ = ["LayoutSelector", "require_both_layouts", "row_pairs"]


def require_both_layouts(config: ArrayConfig) -> None:
    """Refuse an array if C does not divide R: a vector of R lanes must hold whole rows."""
    if config.rows % config.columns:
        raise BadInputError(
            "Rows of an array that loads by column must be a multiple of its columns, "
            f"not {config.rows} for {config.columns}"
        )


def row_pairs(vector: Value, *, columns: int, bits: int) -> Value:
    """Lanes of operands of half a lane from a vector of whole rows of them.

    The rows come one after the other; lane c of a pair of rows has operand c of both, that of the
    even row first.
    """
    row_bits = bits * columns
    return Cat(
        Cat(vector[low : low + bits], vector[low + row_bits :][:bits])
        for pair in range(0, len(vector), 2 * row_bits)
        for low in range(pair, pair + row_bits, bits)
    )


class LayoutSelector(Component):
    """Load selector of one row of cells for both tile layouts; combinational.

    Parameters
    ----------
    columns, operand_bits : int
        Cells of the row, and the width of an operand inside the array.

    Members
    -------
    i_by_row
        Static: 0, a vector is one column; 1, a vector holds whole rows.
    i_lane, i_load
        Column layout: the operand of this row, and a one-hot column number.
    i_row, i_load_row
        Row layout: the operands of this row, and whether the vector holds this row.
    o_operands, o_load
        Operand for each cell, and the cells that load.
    """

    i_by_row: Signal
    i_lane: Signal
    i_load: Signal
    i_row: Signal
    i_load_row: Signal
    o_operands: Signal
    o_load: Signal

    def __init__(self, *, columns: int, operand_bits: int) -> None:
        self._columns = columns
        super().__init__(
            {
                "i_by_row": In(1),
                "i_lane": In(operand_bits),
                "i_load": In(columns),
                "i_row": In(operand_bits * columns),
                "i_load_row": In(1),
                "o_operands": Out(operand_bits * columns),
                "o_load": Out(columns),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        columns = self._columns
        m.d.comb += [
            self.o_operands.eq(Mux(self.i_by_row, self.i_row, self.i_lane.replicate(columns))),
            self.o_load.eq(Mux(self.i_by_row, self.i_load_row.replicate(columns), self.i_load)),
        ]
        return m
