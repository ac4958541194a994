"""Fields of a reduction, from the command to the bursts, and their rules."""

from typing import Any

from amaranth.hdl import Cat, Value
from amaranth.lib import data

from hw.arch.boxes.reductions import REDUCED_FORMATS
from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import REDUCTION_BITS

__all__ = ["reduction_layout", "reduction_request", "reduction_rules"]

#: Reduction that a command asks for, if it ``combines`` at all: a `ReductionOperation`.
reduction_request = data.StructLayout({"combines": 1, "operation": REDUCTION_BITS})
#: Reduction of a box, with its `ElementFormat`.
reduction_layout = data.StructLayout({"request": reduction_request, "format": 4})


def reduction_rules(fields: Any, request: Any) -> list[tuple[TmaError, Value]]:
    """Code of each rule, with a bit that is set if a reduction by a descriptor breaks it."""
    legal = Cat(
        (request.operation == operation.value) & fields.format.matches(*(f.value for f in formats))
        for operation, formats in REDUCED_FORMATS.items()
    )
    return [(TmaError.REDUCE, request.combines & ~legal.any())]
