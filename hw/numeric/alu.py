"""Golden arithmetic of a lane's fused multiply-add and arithmetic logic unit (ALU), in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.numeric import elementwise
from hw.numeric.alu_codes import AluOperation
from hw.numeric.compositions import subtract
from hw.numeric.formats import fp32, int32

__all__ = ["alu", "ceil", "fused_multiply_add"]

Array = npt.NDArray[Any]


def ceil(x: npt.ArrayLike) -> Array:
    """The least integer not below a float32; zeros keep their signs, (-1, 0) becomes -0."""
    values = np.asarray(x)
    if values.dtype != fp32.dtype:
        raise BadInputError(f"Operand must be of float32, not {values.dtype}")
    with np.errstate(invalid="ignore"):
        return elementwise.canonical(np.ceil(values))


def fused_multiply_add(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    *,
    negate_product: bool = False,
    negate_addend: bool = False,
) -> Array:
    """``±a * b ± c`` of float32 with one rounding; NaN are canonical.

    Raises
    ------
    BadInputError
        An operand is of another type.
    """
    product = np.negative(a) if negate_product else a
    return elementwise.fma(product, b, np.negative(c) if negate_addend else c)


def alu(operation: AluOperation, a: Array, b: Array, c: Array, d: Array) -> Array:
    """Words that an operation makes of words, all arrays of uint32 of one shape.

    Raises
    ------
    BadInputError
        The operation is no `AluOperation`.
    """
    floats = [fp32.from_bits(x) for x in (a, b)]
    numbers = [int32.from_bits(x) for x in (a, b)]
    match operation:
        case AluOperation.ADD | AluOperation.SUBTRACT | AluOperation.MINIMUM | AluOperation.MAXIMUM:
            compute = {
                AluOperation.ADD: elementwise.add,
                AluOperation.SUBTRACT: subtract,
                AluOperation.MINIMUM: elementwise.minimum,
                AluOperation.MAXIMUM: elementwise.maximum,
            }[operation]
            return fp32.bits_of(compute(*floats))
        case AluOperation.SELECT_LESS:
            return np.where(elementwise.less(*floats), c, d)
        case AluOperation.SELECT_EQUAL:
            return np.where(elementwise.equal(*floats), c, d)
        case AluOperation.SELECT_LESS_INT32:
            return np.where(numbers[0] < numbers[1], c, d)
        case AluOperation.CEIL:
            return fp32.bits_of(ceil(floats[0]))
        case AluOperation.TO_INT32:
            return int32.bits_of(elementwise.to_int32(floats[0]))
        case AluOperation.FROM_INT32:
            return fp32.bits_of(elementwise.from_int32(numbers[0]))
        case AluOperation.ADD_INT32:
            return a + b
        case AluOperation.AND:
            return a & b
        case AluOperation.OR:
            return a | b
        case AluOperation.XOR:
            return a ^ b
        case AluOperation.SHIFT_LEFT:
            moved: Array = np.left_shift(a, b & 31)
            return moved
        case AluOperation.SHIFT_RIGHT:
            return int32.bits_of(np.right_shift(numbers[0], (b & 31).astype(np.int32)))
    raise BadInputError(f"Operation must be one of AluOperation, not {operation!r}")
