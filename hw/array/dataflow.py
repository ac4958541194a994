"""The three dataflows of a systolic array (WS, OS, IS), and the parameters of an array."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hw.arch.checks import refusal
from hw.array.cell_config import CellConfig
from hw.array.unit_parameters import COLUMNS, DATAFLOW, LATENCY, ROWS
from hw.numeric.formats import LANE_BITS, Format

__all__ = ["LANE_BITS", "ArrayConfig", "Dataflow"]


class Dataflow(enum.Enum):
    """Which of the three matrices of a product is stationary in the cells.

    Members
    -------
    WS
        Weight-stationary: activations pass to the right, partial sums pass down.
    OS
        Output-stationary: activations pass to the right, weights pass down.
    IS
        Input-stationary: activations stay, weights pass to the right, partial sums pass down.
    """

    WS = "ws"
    OS = "os"
    IS = "is"


@dataclass(frozen=True)
class ArrayConfig:
    """Elaboration parameters of a systolic array of R × C cells.

    Parameters
    ----------
    rows, columns : int
        Cells of a column (R) and of a row (C), 1 to 1024 each.
    dataflow : Dataflow
    formats : tuple of Format
        Operand formats of the cells, as :class:`hw.array.cell_config.CellConfig` takes them.
    latency : int
        Register stages on a cell's partial-sum path (L).
    hard_blocks : tuple of str
        Hard blocks of an FPGA that the cells are written for, as ``CellConfig`` takes them.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    rows: int
    columns: int
    dataflow: Dataflow
    formats: tuple[Format, ...]
    latency: int = LATENCY.default
    hard_blocks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ROWS.require(self.rows)
        COLUMNS.require(self.columns)
        if not isinstance(self.dataflow, Dataflow):
            names = ", ".join(each.value for each in Dataflow)
            raise refusal(DATAFLOW.noun, f"be one of {names}", self.dataflow)
        CellConfig(self.formats, self.latency, self.hard_blocks)

    @property
    def cell(self) -> CellConfig:
        """Parameters of its cells."""
        return CellConfig(self.formats, self.latency, self.hard_blocks)

    @property
    def lane_bits(self) -> int:
        """Width of a lane of operands."""
        return self.cell.lane_bits

    @property
    def latency_cycles(self) -> int:
        """Cycles from a vector to its sum in column 0 of an array with a stationary operand."""
        return 2 + self.rows * self.latency

    @property
    def adder_cycles(self) -> int:
        """Cycles from a sum that leaves the array through an adder below its column."""
        return 1 + self.latency
