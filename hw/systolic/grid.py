"""The weight-stationary grid: R × C cells, shared by row, with the activation skew."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.numeric.formats import Format
from hw.shared import shared
from hw.systolic.cell import Cell, CellConfig
from hw.systolic.operand import OperandRecoder
from hw.systolic.skew import delayed

__all__ = ["Grid", "GridRow"]


def _format_names(formats: tuple[Format, ...]) -> str:
    return "_".join(sorted(fmt.name for fmt in formats))


class GridRow(wiring.Component):
    """One row of cells: activations pass to the right, sums pass straight down.

    Parameters
    ----------
    columns : int
        Cells of the row.
    formats : tuple of Format
        Operand formats of the cells.
    latency : int
        Registers on a cell's sum path.

    Members
    -------
    i_a, i_swap
        Activation of column 0 and its swap mark; column c sees them c cycles later.
    i_w_lane, i_w_row, i_w_by_row, i_w_load
        Weight buses: one element for the whole row, one for each column, which of the two counts,
        and the cells whose shadow register loads it.
    i_p, o_p
        Sums from above and to below, 32 bits a column.
    mode
        Static: 1 takes the operands as int8 pairs.
    """

    i_a: Signal
    i_swap: Signal
    i_w_lane: Signal
    i_w_row: data.View[data.ArrayLayout]
    i_w_by_row: Signal
    i_w_load: Signal
    i_p: data.View[data.ArrayLayout]
    o_p: data.View[data.ArrayLayout]
    mode: Signal

    def __init__(self, *, columns: int, formats: tuple[Format, ...], latency: int) -> None:
        self._columns = columns
        self._formats = formats
        self._latency = latency
        bits = CellConfig(formats, latency).operand_bits
        super().__init__(
            {
                "i_a": In(bits),
                "i_swap": In(1),
                "i_w_lane": In(bits),
                "i_w_row": In(data.ArrayLayout(bits, columns)),
                "i_w_by_row": In(1),
                "i_w_load": In(columns),
                "i_p": In(data.ArrayLayout(32, columns)),
                "o_p": Out(data.ArrayLayout(32, columns)),
                "mode": In(1),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return f"row_{self._columns}_{_format_names(self._formats)}_l{self._latency}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, swap = self.i_a, self.i_swap
        for column in range(self._columns):
            cell = Cell(formats=self._formats, latency=self._latency)
            m.submodules[f"cell_{column}"] = shared(cell)
            m.d.comb += [
                cell.i_a.eq(a),
                cell.i_swap.eq(swap),
                cell.i_w.eq(Mux(self.i_w_by_row, self.i_w_row[column], self.i_w_lane)),
                cell.i_w_load.eq(self.i_w_load[column]),
                cell.i_p.eq(self.i_p[column]),
                self.o_p[column].eq(cell.o_p),
            ]
            if cell.config.has_mode:
                m.d.comb += cell.mode.eq(self.mode)
            a, swap = cell.o_a, cell.o_swap
        return m


class Grid(wiring.Component):
    """R × C cells that keep weights and pass activations right and sums down.

    It never stalls: a cycle without an activation is a bubble that computes a sum nobody keeps.
    An activation vector of cycle t leaves in column c as a sum in cycle ``t + latency_cycles + c``;
    its old sum must be at ``i_p`` in cycle ``t + 2 + c``. A vector with ``i_swap`` and all after it
    use the weights that were in the shadow registers; column j of those must have been loaded in
    a cycle before t + j.

    Parameters
    ----------
    rows, columns : int
        Cells of the grid; ``columns`` is half of ``rows`` (both follow from the link width).
    formats : tuple of Format
        Operand formats.
    latency : int
        Registers on a cell's sum path.

    Members
    -------
    i_a, i_swap
        Activation vector, 16 bits a row, and whether new weights start with it.
    i_w, i_w_index, i_w_by_row, i_w_load
        Weight vector; its number in its tile; its layout (0: column ``i_w_index``, lanes = rows;
        1: two rows, four for int8, × columns); whether it is there.
    i_p, o_p
        Sums entering and leaving each column, one cycle later a column.
    mode
        Static: 1 takes the operands as int8 pairs.
    """

    i_a: Signal
    i_swap: Signal
    i_w: Signal
    i_w_index: Signal
    i_w_by_row: Signal
    i_w_load: Signal
    i_p: data.View[data.ArrayLayout]
    o_p: data.View[data.ArrayLayout]
    mode: Signal

    def __init__(
        self, *, rows: int, columns: int, formats: tuple[Format, ...], latency: int
    ) -> None:
        if rows != 2 * columns:
            raise ValueError(
                f"Grid must have twice as many rows as columns, not {rows} × {columns}"
            )
        self._rows = rows
        self._columns = columns
        self._formats = formats
        self._latency = latency
        super().__init__(
            {
                "i_a": In(16 * rows),
                "i_swap": In(1),
                "i_w": In(16 * rows),
                "i_w_index": In(range(columns)),
                "i_w_by_row": In(1),
                "i_w_load": In(1),
                "i_p": In(data.ArrayLayout(32, columns)),
                "o_p": Out(data.ArrayLayout(32, columns)),
                "mode": In(1),
            }
        )

    @property
    def latency_cycles(self) -> int:
        """Cycles from an activation vector to its sum in column 0."""
        return 2 + self._rows * self._latency

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        formats = _format_names(self._formats)
        return f"grid_{self._rows}x{self._columns}_{formats}_l{self._latency}"

    def _recoded(self, m: Module, vector: Signal, name: str) -> list[Signal]:
        lanes = []
        for row in range(self._rows):
            recoder = OperandRecoder(formats=self._formats)
            m.submodules[f"{name}_{row}"] = shared(recoder)
            m.d.comb += [
                recoder.i_bits.eq(vector.word_select(row, 16)),
                recoder.mode.eq(self.mode),
            ]
            lanes.append(recoder.o_operand)
        return lanes

    def elaborate(self, platform: object) -> Module:
        m = Module()
        activations = self._recoded(m, self.i_a, "recode_a")
        weights = self._recoded(m, self.i_w, "recode_w")

        # By rows, a vector holds two rows of 16-bit elements; of bytes it holds four, and a cell
        # takes the bytes of two successive rows as one pair.
        by_row: list[list[Value]] = []
        for half in range(2):
            buses: list[Value] = []
            for column in range(self._columns):
                even = self.i_w.word_select(2 * half * self._columns + column, 8)
                odd = self.i_w.word_select((2 * half + 1) * self._columns + column, 8)
                lane = weights[half * self._columns + column]
                buses.append(Mux(self.mode, Cat(even, odd), lane))
            by_row.append(buses)

        sums = [self.i_p[column] for column in range(self._columns)]
        for index in range(self._rows):
            row = GridRow(columns=self._columns, formats=self._formats, latency=self._latency)
            m.submodules[f"row_{index}"] = shared(row)
            skew = index * self._latency
            load = Mux(
                self.i_w_by_row,
                (self.i_w_index == index // 2).replicate(self._columns),
                1 << self.i_w_index,
            )
            m.d.comb += [
                row.i_a.eq(delayed(m, activations[index], skew, name=f"a_{index}")),
                row.i_swap.eq(delayed(m, self.i_swap, skew, name=f"swap_{index}", reset=True)),
                row.i_w_lane.eq(weights[index]),
                row.i_w_by_row.eq(self.i_w_by_row),
                row.i_w_load.eq(Mux(self.i_w_load, load, 0)),
                row.mode.eq(self.mode),
            ]
            for column in range(self._columns):
                m.d.comb += [
                    row.i_w_row[column].eq(by_row[index % 2][column]),
                    row.i_p[column].eq(sums[column]),
                ]
            sums = [row.o_p[column] for column in range(self._columns)]
        for column in range(self._columns):
            m.d.comb += self.o_p[column].eq(sums[column])
        return m
