"""Reductions of a store: operations, formats that they take, and their arithmetic."""

from amaranth.lib import enum

from hw.arch.descriptor import ElementFormat

__all__ = ["FLOAT_FORMATS", "INTEGER_FORMATS", "REDUCED_FORMATS", "ReductionOperation"]


class ReductionOperation(enum.Enum, shape=3):
    """Operation that combines an element of a store with the one in memory."""

    #: Sum: of integers modulo 2 to the bits of the format, of floats rounded to nearest even.
    ADD = 0
    #: The smaller one.
    MIN = 1
    #: The greater one.
    MAX = 2
    #: Bitwise.
    AND = 3
    OR = 4
    XOR = 5


#: Integer formats; all but `UINT8` are signed.
INTEGER_FORMATS = (
    ElementFormat.INT8,
    ElementFormat.UINT8,
    ElementFormat.INT16,
    ElementFormat.INT32,
)
#: Floats, which can be added.
FLOAT_FORMATS = (ElementFormat.BF16, ElementFormat.FP16, ElementFormat.FP32)
#: Formats that each operation takes; any other is refused.
REDUCED_FORMATS = dict.fromkeys(ReductionOperation, INTEGER_FORMATS) | {
    ReductionOperation.ADD: INTEGER_FORMATS + FLOAT_FORMATS
}
