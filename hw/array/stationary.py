"""Weight- or input-stationary array: the streaming operand passes right, partial sums pass down.

Weight-stationary, the cells keep weights; input-stationary, they keep activations, and the weights
are the streaming operand. The PCU's array is such an array, whose weight tiles come in either of
two layouts (:mod:`hw.array.layout`).
"""

from __future__ import annotations

from amaranth.hdl import Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.array.cell import Cell
from hw.array.cell_config import HardBlocks
from hw.array.dataflow import ArrayConfig
from hw.array.layout import LayoutSelector, require_both_layouts
from hw.array.operand import OperandRecoder
from hw.array.skew import skewed
from hw.emit.structure import Bits, Structural, Structure

__all__ = ["StationaryArray", "StationaryRow"]


class StationaryRow(Structural):
    """One row of stationary-operand cells.

    Parameters
    ----------
    config : ArrayConfig
        Parameters of the array.
    by_column : bool
        Whether each column has its own load enable.

    Members
    -------
    i_moving, i_swap
        Streaming operand of column 0, one lane, and its swap flag; column c sees them c cycles
        later.
    i_stationary, i_load
        Recoded operands for the shadow registers of all columns, and their load enable: one bit
        for all, or one per column.
    i_p, o_p
        Partial sums from above and to below, 32 bits per column.
    mode
        Static: format of the streaming operand, as :class:`hw.array.operand.OperandRecoder` says.
    """

    i_moving: Signal
    i_swap: Signal
    i_stationary: Signal
    i_load: Signal
    i_p: Signal
    o_p: Signal
    mode: Signal

    def __init__(self, config: ArrayConfig, *, by_column: bool = False) -> None:
        self._config = config
        self._by_column = by_column
        sums_bits = 32 * config.columns
        super().__init__(
            {
                "i_moving": In(config.lane_bits),
                "i_swap": In(1),
                "i_stationary": In(config.cell.operand_bits * config.columns),
                "i_load": In(config.columns if by_column else 1),
                "i_p": In(sums_bits),
                "o_p": Out(sums_bits),
                "mode": In(1),
            }
        )

    def structure(self) -> Structure:
        structure = Structure(self)
        config = self._config
        mode = structure.port("mode")
        bits = config.cell.operand_bits
        moving = structure.wire("operand", bits)
        structure.instance(
            "edge",
            OperandRecoder(formats=config.formats),
            i_bits=structure.port("i_moving"),
            mode=mode,
            o_operand=moving,
        )
        swap = structure.port("i_swap")
        stationary, sums = structure.port("i_stationary"), structure.port("i_p")
        load = structure.port("i_load")
        leaving = structure.wire("leaving", 32 * config.columns)
        structure.output("o_p", leaving)
        for column in range(config.columns):
            cell = Cell(
                formats=config.formats,
                latency=config.latency,
                hard_blocks=HardBlocks(config.hard_blocks),
            )
            right = structure.wire(f"operand_{column}", bits)
            swap_right = structure.wire(f"swap_{column}", 1)
            structure.instance(
                f"cell_{column}",
                cell,
                i_a=moving,
                i_swap=swap,
                o_a=right,
                o_swap=swap_right,
                i_w=stationary[bits * column : bits * (column + 1)],
                i_w_load=load[:1],
                i_p=sums[32 * column : 32 * (column + 1)],
                o_p=leaving[32 * column : 32 * (column + 1)],
                **({"mode": mode} if config.cell.has_mode else {}),
            )
            moving, swap = right, swap_right
            load = load[1:] if self._by_column else load
        return structure


class StationaryArray(Structural):
    """Systolic array of R × C cells with a stationary operand in shadow and active registers.

    It never stalls: a cycle without a vector is a bubble, whose partial sums are discarded. With
    skew, a vector of cycle t leaves column c as a sum in cycle
    ``t + ArrayConfig.latency_cycles + c``, and
    its old partial sum must be at ``i_p`` in cycle ``t + 2 + c``. A vector with ``i_swap`` and all
    after it use the content of the shadow registers; cell (r, c) swaps in cycle ``t + r·L + c``,
    and a load in that same cycle is for the next swap. No register here needs a reset: the
    wavefront of a swap that is in progress at a reset stays ahead of all later ones, which copy
    the same registers again.

    Parameters
    ----------
    config : ArrayConfig
    skewed : bool
        Whether the array delays lane r of a vector by r·L cycles itself; otherwise its neighbour
        does, and ``i_swap`` has one bit per row.
    by_column : bool
        Whether the stationary tile may come by rows or by columns; otherwise by rows only.

    Members
    -------
    i_moving, i_swap
        Vector of R lanes, and whether the operands in the shadow registers become
        active with it.
    i_stationary, i_load
        Vector of C lanes, and the rows whose shadow registers load it now. With
        ``by_column`` a vector of R lanes, and one bit per vector of a tile of C vectors.
    i_by_row
        Only with ``by_column``; static. 0: vector c is column c; 1: vector v holds the R / C rows
        from v * R / C on, C lanes per row.
    i_p, o_p
        Partial sums entering and leaving each column, one more cycle of skew per column.
    moving_mode, stationary_mode
        Static: format of each operand, as :class:`hw.array.operand.OperandRecoder` says.

    Raises
    ------
    BadInputError
        ``by_column``, and C does not divide R.
    """

    i_moving: Signal
    i_swap: Signal
    i_stationary: Signal
    i_load: Signal
    i_by_row: Signal
    i_p: data.View[data.ArrayLayout]
    o_p: data.View[data.ArrayLayout]
    moving_mode: Signal
    stationary_mode: Signal

    def __init__(
        self, config: ArrayConfig, *, skewed: bool = True, by_column: bool = False
    ) -> None:
        self._config = config
        self._skewed = skewed
        self._by_column = by_column
        if by_column:
            require_both_layouts(config)
        lanes, vectors = config.columns, config.rows
        sums = data.ArrayLayout(32, config.columns)
        super().__init__(
            {
                "i_moving": In(config.lane_bits * config.rows),
                "i_swap": In(1 if skewed else config.rows),
                "i_stationary": In(config.lane_bits * (vectors if by_column else lanes)),
                "i_load": In(lanes if by_column else vectors),
                "i_p": In(sums),
                "o_p": Out(sums),
                "moving_mode": In(1),
                "stationary_mode": In(1),
            }
            | ({"i_by_row": In(1)} if by_column else {})
        )

    def structure(self) -> Structure:
        structure = Structure(self)
        config = self._config
        bits = config.cell.operand_bits
        vector = structure.port("i_stationary")
        recoded = len(vector) // config.lane_bits
        stationary = structure.wire("stationary", bits * recoded)
        for lane in range(recoded):
            structure.instance(
                f"recode_{lane}",
                OperandRecoder(formats=config.formats),
                i_bits=vector[config.lane_bits * lane : config.lane_bits * (lane + 1)],
                mode=structure.port("stationary_mode"),
                o_operand=stationary[bits * lane : bits * (lane + 1)],
            )
        lanes, swap = structure.port("i_moving"), structure.port("i_swap")
        sums = structure.port("i_p")
        for index in range(config.rows):
            below = structure.wire(f"p_{index}", 32 * config.columns)
            operands, load = self._loaded(structure, index, stationary)
            structure.instance(
                f"row_{index}",
                StationaryRow(config, by_column=self._by_column),
                i_moving=lanes[: config.lane_bits],
                i_swap=swap[:1],
                i_stationary=operands,
                i_load=load,
                i_p=sums,
                o_p=below,
                mode=structure.port("moving_mode"),
            )
            sums, lanes = below, lanes[config.lane_bits :]
            if not self._skewed:
                swap = swap[1:]
            elif index < config.rows - 1:
                lanes = skewed(structure, f"lanes_{index}", lanes, config.latency)
                swap = skewed(structure, f"swap_{index}", swap, config.latency)
        structure.output("o_p", sums)
        return structure

    def _loaded(self, structure: Structure, index: int, stationary: Bits) -> tuple[Bits, Bits]:
        """Operands for a row's shadow registers, and their load enables."""
        config = self._config
        load = structure.port("i_load")
        if not self._by_column:
            return stationary, load[index : index + 1]
        bits = config.cell.operand_bits
        vector, part = divmod(index, config.rows // config.columns)
        operands = structure.wire(f"operands_{index}", bits * config.columns)
        loads = structure.wire(f"load_{index}", config.columns)
        structure.instance(
            f"select_{index}",
            LayoutSelector(columns=config.columns, operand_bits=bits),
            i_by_row=structure.port("i_by_row"),
            i_lane=stationary[bits * index : bits * (index + 1)],
            i_row=stationary[bits * config.columns * part : bits * config.columns * (part + 1)],
            i_load=load,
            i_load_row=load[vector : vector + 1],
            o_operands=operands,
            o_load=loads,
        )
        return operands, loads
