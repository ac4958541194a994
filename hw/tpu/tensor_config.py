"""Elaboration parameters of a tensor unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from amaranth.lib import data

from hw.arch.errors import BadInputError
from hw.arch.tensor_instructions import TensorSizes
from hw.array.dataflow import LANE_BITS, Dataflow
from hw.array.unit_parameters import BUFFER_ROWS
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import Format

__all__ = ["TensorConfig"]


@dataclass(frozen=True)
class TensorConfig:
    """Elaboration parameters of a tensor unit.

    Parameters
    ----------
    unit : UnitConfig
        A weight-stationary unit of one operand format whose results have that format.
    buffer_rows : int
        Depth of the unified buffer in vectors.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    unit: UnitConfig
    buffer_rows: int

    def __post_init__(self) -> None:
        array = self.unit.array
        BUFFER_ROWS.require(self.buffer_rows)
        if array.dataflow != Dataflow.WS:
            raise BadInputError(f"Tensor unit dataflow must be ws, not {array.dataflow.value}")
        if len(array.formats) > 1:
            names = ", ".join(fmt.name for fmt in array.formats)
            raise BadInputError(f"Tensor unit formats must be one, not {names}")
        if self.unit.out != self.format:
            out = self.unit.out or self.format.accumulator
            raise BadInputError(
                f"Tensor unit results must be of its operands' format {self.format.name}, "
                f"not {out.name}"
            )

    @property
    def format(self) -> Format:
        """Format of operands and results."""
        return self.unit.array.formats[0]

    @property
    def vector_bits(self) -> int:
        """Width of a vector of the buffer."""
        return LANE_BITS * self.unit.array.rows

    @property
    def sizes(self) -> TensorSizes:
        """Sizes that programs of the unit depend on."""
        return TensorSizes(
            rows=self.unit.array.rows,
            columns=self.unit.array.columns,
            accumulator_rows=self.unit.accumulator_rows,
            buffer_rows=self.buffer_rows,
            format=self.format,
            bias=self.unit.bias,
        )

    @property
    def granule(self) -> int:
        """Write-enable granularity of the buffer, in operands."""
        sizes = self.sizes
        return sizes.elements if sizes.slots == 1 else math.gcd(sizes.elements, sizes.columns)

    @property
    def span(self) -> data.StructLayout:
        """Layout of a command in progress: its first vector, and the one after its last."""
        return data.StructLayout(
            {
                "busy": 1,
                "address": range(self.buffer_rows),
                "end": range(self.buffer_rows + 1),
            }
        )

    @property
    def order(self) -> data.StructLayout:
        """Layout of a decoded instruction."""
        return data.StructLayout(
            {
                "opcode": 4,
                "fault": 4,
                "accumulate": 1,
                "finish": 1,
                "relu": 1,
                "shift": 6,
                "slot": range(max(2, self.sizes.slots)),
                "rows": range(self.buffer_rows + 1),
                "address": range(self.buffer_rows),
                "end": range(self.buffer_rows + 1),
                "scale": 32,
            }
        )
