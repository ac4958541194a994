"""Random operands that show every rounding: small integers would hide them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format, bf16, int8

__all__ = ["random_operand"]

Array = npt.NDArray[Any]

#: Bits of the bf16 values that need a rule of their own: both zeros, the smallest and largest
#: subnormal, the smallest normal, the largest finite value, infinity and a NaN with a payload.
_SPECIAL_BF16 = (0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x7F7F, 0x7F80, 0xFF80, 0x7FA1)


def random_operand(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    fmt: Format,
    *,
    special_share: float = 0.0,
    exponent_spread: int = 6,
) -> Array:
    """Random array of a format.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : tuple of int
    fmt : Format
        bf16: either sign, exponents spread over ``2 ** ±exponent_spread``, so that the order of a
        sum matters. int8: all values alike, −128 among them.
    special_share : float
        Share of bf16 elements replaced by zeros, subnormals, extremes, infinities and NaN.

    Raises
    ------
    TypeError
        If the format is not an operand format.
    """
    if fmt == int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    if fmt != bf16:
        raise TypeError(f"Format of an operand must be bf16 or int8, not {fmt.name}")
    exponents = rng.integers(127 - exponent_spread, 127 + exponent_spread + 1, shape)
    bits = rng.integers(0, 1 << 7, shape) | exponents << 7 | rng.integers(0, 2, shape) << 15
    replaced = rng.random(shape) < special_share
    bits = np.where(replaced, rng.choice(np.array(_SPECIAL_BF16), shape), bits)
    return fmt.from_bits(bits)
