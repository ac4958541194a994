"""Parameters of stand-alone arrays, matrix units and tensor units: values, defaults, meaning.

The dataclasses of these parameters check them, and the command line makes its options of them. It
prints its help without numpy, which the dataclasses need.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hw.arch.checks import Domain, refusal, require_bool
from hw.arch.limits import CELL_LATENCY, INSTRUCTION_QUEUE
from hw.numeric.formats import OPERANDS
from hw.numeric.formats import PAIRS as CELL_PAIRS

__all__ = [
    "ACCUMULATOR_ROWS",
    "ADDER",
    "BIAS",
    "BUFFER_ROWS",
    "COLUMNS",
    "DATAFLOW",
    "FORMAT",
    "FORMATS",
    "HARD_BLOCKS",
    "INSTRUCTIONS",
    "LATENCY",
    "MULTIPLIER",
    "OUT",
    "PAIRS",
    "RESULT_ROWS",
    "ROWS",
    "TILES_AHEAD",
    "UnitParameter",
]

#: Formats of operands.
FORMATS = tuple(each.name for each in OPERANDS)
#: Formats that one cell can have together.
PAIRS = tuple(f"{first.name},{second.name}" for first, second in CELL_PAIRS)
_RESULTS = [each.name for each in OPERANDS if each.is_float and each.is_stored]


@dataclasses.dataclass(frozen=True)
class UnitParameter:
    """Parameter of a stand-alone unit.

    Members
    -------
    name : str
        Its name as an option.
    noun : str
        Its name in messages.
    values : Domain or tuple of str or None
        Integers or words that it may be; none for a Boolean or a format.
    default : object
        Default value.
    help : str
        Description in one line.
    """

    name: str
    noun: str
    values: Domain | tuple[str, ...] | None
    default: Any
    help: str

    def require(self, value: object) -> None:
        """Refuse a value that it must not have.

        Raises
        ------
        BadInputError
            "<Noun> must be <rule>, not <value>".
        """
        if isinstance(self.values, Domain):
            self.values.require(self.noun, value)
        elif self.values is None:
            require_bool(self.noun, value)
        elif value not in self.values:
            raise refusal(self.noun, f"be one of {', '.join(self.values)}", value)


_SIDE = Domain(1, 1024)
ROWS = UnitParameter("rows", "Array rows", _SIDE, 16, "rows of the array")
COLUMNS = UnitParameter("cols", "Array columns", _SIDE, 16, "columns of the array")
DATAFLOW = UnitParameter(
    "dataflow",
    "Array dataflow",
    ("ws", "os", "is"),
    "ws",
    "stationary operand: weights (ws), outputs (os) or inputs (is)",
)
FORMAT = UnitParameter(
    "format",
    "Cell formats",
    None,
    "bf16",
    f"operand format: {', '.join(FORMATS)}; or two formats in one cell: {' '.join(PAIRS)}",
)
LATENCY = UnitParameter(
    "latency", "Cell latency", CELL_LATENCY, 1, "registers on the sum path, 1 to 3"
)
#: Hard blocks of an FPGA that the cells of each multiplier are written for.
HARD_BLOCKS: tuple[tuple[str, ...], ...] = ((), ("dsp",))
MULTIPLIER = UnitParameter(
    "multiplier",
    "Cell multiplier",
    ("gates", "dsp"),
    "gates",
    "multipliers of the cells: trees of gates, or hard blocks of an FPGA (dsp)",
)
ACCUMULATOR_ROWS = UnitParameter(
    "accumulator_rows", "Accumulator rows", Domain(1, 1 << 16), 512, "accumulators per column"
)
ADDER = UnitParameter(
    "adder",
    "Adder",
    ("top", "bottom"),
    "top",
    "add sums of successive tiles in the array (top) or below it (bottom)",
)
OUT = UnitParameter(
    "out",
    "Result format",
    None,
    None,
    f"result format: int32 or int8; fp32, {', '.join(_RESULTS[:-1])} or {_RESULTS[-1]} (default "
    "that of the sums; of a tensor_unit, that of the operands)",
)
BIAS = UnitParameter("bias", "Bias", None, False, "add a bias stream to the sums")
TILES_AHEAD = UnitParameter(
    "tiles_ahead",
    "Tiles ahead",
    Domain(1, 64),
    1,
    "stationary tiles buffered ahead of the one in use",
)
RESULT_ROWS = UnitParameter(
    "result_rows",
    "Result rows",
    Domain(1, 1 << 16, power=True),
    0,
    "depth of the result FIFO in rows (default sufficient for full throughput)",
)
BUFFER_ROWS = UnitParameter(
    "buffer_rows",
    "Unified buffer rows",
    Domain(2, 1 << 20),
    4096,
    "vectors in the unified buffer of a tensor_unit",
)
INSTRUCTIONS = UnitParameter(
    "instructions",
    "Instructions waiting",
    INSTRUCTION_QUEUE,
    64,
    "submitted instructions of a tensor_top that may wait",
)
