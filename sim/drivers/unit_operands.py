"""Random operands of stand-alone matrix units, for every format."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format, bf16, int8
from hw.numeric.mx import quantise
from sim.operands import random_operand

__all__ = ["unit_operands"]


def _operand(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format) -> npt.NDArray[Any]:
    """Random operands; half of the bf16 products have special values."""
    if fmt in (bf16, int8):
        special = float(rng.choice([0.0, 0.05]))
        return random_operand(rng, shape, fmt, special_share=special)
    if not fmt.is_float:
        half = 1 << (fmt.bits - 1)
        return rng.integers(-half, half, shape).astype(fmt.dtype)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape)).astype(fmt.dtype)


def unit_operands(rng: np.random.Generator, m: int, n: int, k: int, fmt: Format) -> tuple[Any, Any]:
    """Operands of a product, as microscaled rows and columns for MX formats.

    Parameters
    ----------
    rng : numpy.random.Generator
    m, n, k : int
        Extents of the product.
    fmt : Format
    """
    if not fmt.has_scale:
        return _operand(rng, (m, k), fmt), _operand(rng, (k, n), fmt)
    rows, columns = (rng.standard_normal((lines, k), np.float32) for lines in (m, n))
    return quantise(rows, fmt), quantise(columns, fmt)
