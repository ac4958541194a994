"""Operands of products whose NaN of the fill outside a tensor counts as +0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import OPERANDS

__all__ = ["fill_as_zero"]

Array = npt.NDArray[Any]

_FILLS = {each.dtype: each.fill_nan for each in OPERANDS if each.fill_nan is not None}


def fill_as_zero(operand: Array) -> Array:
    """The operand with +0 in the place of every `Format.fill_nan`; other NaN stay.

    Formats that have no such NaN are returned as they are.
    """
    fill = _FILLS.get(operand.dtype)
    if fill is None:
        return operand
    is_fill = operand.view(np.uint16) == fill
    return np.where(is_fill, operand.dtype.type(0), operand) if is_fill.any() else operand
