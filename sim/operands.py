"""Random operands with wide exponents and special values, so that rounding differences show."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.numeric.formats import Format, bf16, fp32, int8, int32
from sw.array_spec import ArraySpec

__all__ = ["random_inputs", "random_operand"]

Array = npt.NDArray[Any]

#: Bits of special bf16 values: both zeros, the smallest and largest subnormal, the smallest
#: normal, the largest finite value, infinity and a NaN with a payload.
_SPECIAL_BF16 = (0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x7F7F, 0x7F80, 0xFF80, 0x7FA1)
#: Special values that leave a sum finite: both zeros, subnormals, smallest normals.
_SMALL_BF16 = (0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080)
#: Special values that can make a sum non-finite: largest finite values, infinities, NaN.
_WILD_BF16 = (0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7FA1, 0xFFC0)

_SMALL_SHARE = 1 / 64
#: For multiples of this, seeds of `random_inputs` add infinities and NaN to a float array.
_WILD_SEEDS = 4
_MOST_WILD = 3


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
        bf16: both signs, exponents over ``2 ** ±exponent_spread``, so that the order of a sum
        matters. int8: uniform over all values, −128 included.
    special_share : float
        Fraction of bf16 elements replaced by zeros, subnormals, extremes, infinities and NaN.

    Raises
    ------
    BadInputError
        If the format is not an operand format.
    """
    if fmt == int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    if fmt != bf16:
        raise BadInputError(f"Format of an operand must be bf16 or int8, not {fmt.name}")
    exponents = rng.integers(127 - exponent_spread, 127 + exponent_spread + 1, shape)
    bits = rng.integers(0, 1 << 7, shape) | exponents << 7 | rng.integers(0, 2, shape) << 15
    replaced = rng.random(shape) < special_share
    bits = np.where(replaced, rng.choice(np.array(_SPECIAL_BF16), shape), bits)
    return fmt.from_bits(bits)


def random_inputs(
    arrays: Iterable[ArraySpec], seed: int, *, wild: bool | None = None
) -> Mapping[str, Array]:
    """Random arrays for the inputs of a kernel.

    Floats have mixed exponents and include zeros of both signs and subnormals. For every fourth
    seed one array also has up to three infinities, NaN or values whose products overflow. So few
    leave most sums finite, so that the float64 reference can still judge them.

    Parameters
    ----------
    arrays : iterable of ArraySpec
        The inputs, including those updated in place.
    seed : int
    wild : bool or None
        Whether there are infinities and NaN; None lets the seed decide.
    """
    rng = np.random.default_rng([seed & (2**64 - 1), 0x0DEA])
    drawn = {spec.name: _random_array(rng, spec.shape, spec.format) for spec in arrays}
    floats = [array for array in drawn.values() if array.dtype == bf16.dtype]
    if floats and (seed % _WILD_SEEDS == 0 if wild is None else wild):
        chosen = floats[rng.integers(len(floats))].view(np.uint16).reshape(-1)
        places = rng.integers(0, chosen.size, rng.integers(1, _MOST_WILD + 1))
        chosen[places] = rng.choice(np.array(_WILD_BF16, np.uint16), places.size)
    return drawn


def _random_array(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format) -> Array:
    if fmt == fp32:
        return rng.standard_normal(shape, np.float32)
    if fmt == int32:
        return rng.integers(-(1 << 20), 1 << 20, shape, dtype=np.int32)
    array = random_operand(rng, shape, fmt)
    if fmt == bf16:
        bits = array.view(np.uint16)
        replaced = rng.random(shape) < _SMALL_SHARE
        bits[replaced] = rng.choice(np.array(_SMALL_BF16, np.uint16), int(replaced.sum()))
    elif array.size:
        # Also in draws too small to contain it by chance.
        array.reshape(-1)[rng.integers(array.size)] = -128
    return array
