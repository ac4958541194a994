"""Parameters of a stand-alone matrix unit."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.lib import data

from hw.arch.errors import BadInputError
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.unit_parameters import (
    ACCUMULATOR_ROWS,
    ADDER,
    BIAS,
    OUT,
    RESULT_ROWS,
    TILES_AHEAD,
)
from hw.numeric.formats import OPERANDS, Format, fp32, int8, int32

__all__ = ["COUNTERS", "UnitConfig", "result_formats"]

#: Cycle counters, named as in Jouppi et al., In-datacenter performance analysis of a tensor
#: processing unit, ISCA 2017, table 3. Exactly one advances per cycle.
COUNTERS = data.StructLayout(
    {"active": 32, "weight_stall": 32, "weight_shift": 32, "non_matrix": 32}
)


#: Result formats by accumulator format.
_RESULTS = {
    sums: (sums, *(each for each in OPERANDS if each.accumulator == sums and each.is_stored))
    for sums in (int32, fp32)
}


def result_formats(array: ArrayConfig) -> tuple[Format, ...]:
    """Result formats that a unit with this array supports.

    Empty if the array has both int32 and fp32 sums: they leave unchanged, since a 32-bit word does
    not say which of the two it is.
    """
    sums = {fmt.accumulator for fmt in array.formats}
    return _RESULTS[sums.pop()] if len(sums) == 1 else ()


@dataclass(frozen=True)
class UnitConfig:
    """Elaboration parameters of a stand-alone matrix unit.

    Parameters
    ----------
    array : ArrayConfig
    accumulator_rows : int
        Depth of a column's accumulator RAM; an output-stationary unit has none and ignores it.
    result_rows : int
        Depth of the result FIFO, a power of two; 0 for a depth that sustains throughput.
    tiles_ahead : int
        Stationary tiles that the weight buffer holds besides the one in the shadow registers;
        ignored likewise.
    out : Format or None
        Format of the results: the sums' own (None), a float of 16 or 8 bits if they are fp32, int8
        if they are int32. Always None if the array has both kinds of sums.
    bias : bool
        Whether the unit has a bias stream. fp32 sums are then scaled as well.
    adder : str
        Where the sums of a tile are added to those of the tile before: ``"top"``, at the array's
        upper edge, or ``"bottom"``, in an adder below each column, which an output-stationary
        array cannot have.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    array: ArrayConfig
    accumulator_rows: int = ACCUMULATOR_ROWS.default
    result_rows: int = RESULT_ROWS.default
    tiles_ahead: int = TILES_AHEAD.default
    out: Format | None = OUT.default
    bias: bool = BIAS.default
    adder: str = ADDER.default

    def __post_init__(self) -> None:
        ACCUMULATOR_ROWS.require(self.accumulator_rows)
        if self.result_rows != 0 or isinstance(self.result_rows, bool):
            RESULT_ROWS.require(self.result_rows)
            if self.result_rows < self.together:
                raise BadInputError(
                    f"Result rows must be at least {self.together}, the latency of an "
                    f"output-stationary array, not {self.result_rows}"
                )
        TILES_AHEAD.require(self.tiles_ahead)
        allowed = result_formats(self.array)
        if self.out is not None and self.out not in allowed:
            names = ", ".join(sorted(fmt.name for fmt in allowed))
            rule = f"one of {names}" if names else "left to the sums of both kinds"
            raise BadInputError(
                f"Result format must be {rule}, not {getattr(self.out, 'name', repr(self.out))}"
            )
        ADDER.require(self.adder)
        if self.bottom and self.array.dataflow == Dataflow.OS:
            raise BadInputError("Bottom adder must be of a ws or is unit, not of os")
        BIAS.require(self.bias)
        if self.bias and self.array.cell.has_mode:
            raise BadInputError(
                "Bias must be of a unit of one kind of sums, not of both bf16 and int8"
            )

    @property
    def integer_only(self) -> bool:
        """Whether all sums are int32."""
        return not any(fmt.is_float for fmt in self.array.formats)

    @property
    def scales(self) -> bool:
        """Whether int32 sums are requantized to int8."""
        return self.integer_only and self.out == int8

    @property
    def affine(self) -> bool:
        """Whether fp32 sums are multiplied by a scale and added to a bias."""
        return self.bias and not self.integer_only

    @property
    def bottom(self) -> bool:
        """Whether there is an accumulator adder below each column."""
        return self.adder == "bottom"

    @property
    def adding_cycles(self) -> int:
        """Cycles from the bottom of the array to the accumulator."""
        return self.array.adder_cycles if self.bottom else 0

    def summed_elements(self, fmt: Format) -> int | None:
        """Elements of k summed from +0 before accumulation: ``tile`` of the golden matmul."""
        return self.array.rows * fmt.products_per_cycle if self.bottom else None

    @property
    def out_bits(self) -> int:
        """Bits of a result."""
        return 32 if self.out is None else self.out.bits

    @property
    def together(self) -> int:
        """Result-FIFO entries reserved at once: an OS drain cannot pause within L rows."""
        return self.array.latency if self.array.dataflow == Dataflow.OS else 1

    @property
    def queue_rows(self) -> int:
        """Depth of the result FIFO."""
        if self.result_rows:
            return self.result_rows
        array = self.array
        wave = array.columns + 8
        if array.dataflow == Dataflow.OS:
            wave += array.rows + 2 * array.latency
        else:
            wave += array.rows * array.latency + self.adding_cycles
        return 1 << (wave - 1).bit_length()
