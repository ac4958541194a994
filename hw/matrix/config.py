"""Parameters of a stand-alone matrix unit."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.lib import data

from hw.arch.checks import require_bool, require_int, require_power
from hw.arch.errors import BadInputError, shown
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.numeric.formats import Format, bf16, e4m3, e5m2, fp16, fp32, int8, int32

__all__ = ["COUNTERS", "UnitConfig", "result_formats"]

#: Counters of cycles, named as in Jouppi et al., In-datacenter performance analysis of a tensor
#: processing unit, ISCA 2017, table 3. Exactly one moves in a cycle.
COUNTERS = data.StructLayout(
    {"active": 32, "weight_stall": 32, "weight_shift": 32, "non_matrix": 32}
)


#: Formats that results may have, by that of the sums.
_RESULTS = {int32: (int32, int8), fp32: (fp32, bf16, fp16, e4m3, e5m2)}


def result_formats(array: ArrayConfig) -> tuple[Format, ...]:
    """Formats that results of a unit round this array may have.

    None if sums are of both kinds: they leave as they are, for 32 bits say nothing of their kind.
    """
    sums = {fmt.accumulator for fmt in array.formats}
    return _RESULTS[sums.pop()] if len(sums) == 1 else ()


@dataclass(frozen=True)
class UnitConfig:
    """Parameters of a stand-alone matrix unit.

    Parameters
    ----------
    array : ArrayConfig
    accumulator_rows : int
        Sums of a column that wait for the next tile; an output-stationary array has none.
    result_rows : int
        Rows of results that wait to leave, a power of two; 0 for as many as keep results flowing.
    tiles_ahead : int
        Stationary tiles that the queue has room for, besides the one in the shadow registers.
    out : Format
        Format of the results: the sums' own, a float of 16 or 8 bits of fp32, int8 of int32.
    bias : bool
        Whether a bias is added: the unit has a stream of them. fp32 sums are scaled as well.
    adder : str
        Where the sums of a tile meet those of the tile before: ``"top"``, which enter the array,
        or ``"bottom"``, in an adder below each column. An output-stationary array has neither.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    array: ArrayConfig
    accumulator_rows: int = 512
    result_rows: int = 0
    tiles_ahead: int = 1
    out: Format | None = None
    bias: bool = False
    adder: str = "top"

    def __post_init__(self) -> None:
        require_int("Accumulator rows", self.accumulator_rows, 1, 1 << 16)
        if self.result_rows != 0 or isinstance(self.result_rows, bool):
            require_power("Result rows", self.result_rows, 1, 1 << 16)
            if self.result_rows < self.together:
                raise BadInputError(
                    f"Result rows must be at least {self.together}, the latency of an "
                    f"output-stationary array, not {self.result_rows}"
                )
        require_int("Tiles ahead", self.tiles_ahead, 1, 64)
        allowed = result_formats(self.array)
        if self.out is not None and self.out not in allowed:
            names = ", ".join(sorted(fmt.name for fmt in allowed))
            rule = f"one of {names}" if names else "left to the sums of both kinds"
            raise BadInputError(
                f"Result format must be {rule}, not {getattr(self.out, 'name', repr(self.out))}"
            )
        if self.adder not in ("top", "bottom"):
            raise BadInputError(f"Adder must be one of top, bottom, not {shown(self.adder)}")
        if self.bottom and self.array.dataflow == Dataflow.OS:
            raise BadInputError("Bottom adder must be of a ws or is unit, not of os")
        require_bool("Bias", self.bias)
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
        """Whether int32 sums are scaled and saturated to int8."""
        return self.integer_only and self.out == int8

    @property
    def affine(self) -> bool:
        """Whether fp32 sums are scaled and a bias is added."""
        return self.bias and not self.integer_only

    @property
    def bottom(self) -> bool:
        """Whether an adder is below each column."""
        return self.adder == "bottom"

    @property
    def adding_cycles(self) -> int:
        """Cycles that the sum of a tile takes from the array to its accumulator."""
        return 1 + self.array.latency if self.bottom else 0

    @property
    def sum_cycles(self) -> int:
        """Cycles from a vector to that of its row in the next tile, at least, if sums go on."""
        array = self.array
        return 1 + self.adding_cycles if self.bottom else 2 + array.rows * array.latency

    def summed_elements(self, fmt: Format) -> int | None:
        """Elements of the inner extent whose sum starts from +0, the ``tile`` of the reference."""
        return self.array.rows * fmt.products_per_cycle if self.bottom else None

    @property
    def out_bits(self) -> int:
        """Bits of a result."""
        return 32 if self.out is None else self.out.bits

    @property
    def together(self) -> int:
        """Rows of results that leave the array without a pause, whatever waits for them."""
        return self.array.latency if self.array.dataflow == Dataflow.OS else 1

    @property
    def queue_rows(self) -> int:
        """Rows of the queue of results."""
        if self.result_rows:
            return self.result_rows
        array = self.array
        wave = array.columns + 8
        if array.dataflow == Dataflow.OS:
            wave += array.rows + 2 * array.latency
        else:
            wave += array.rows * array.latency + self.adding_cycles
        return 1 << (wave - 1).bit_length()

    @property
    def name(self) -> str:
        """What tells two units apart, for names of modules."""
        out = "" if self.out is None else f"_{self.out.name}"
        sizes = f"a{self.accumulator_rows}_q{self.queue_rows}_t{self.tiles_ahead}"
        return f"{self.array.name}_{sizes}{out}{'_bias' * self.bias}{'_bottom' * self.bottom}"
