"""Random operands with wide exponents and special values, so that rounding differences show."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.numeric.formats import Format, fp32, int8, int32
from hw.numeric.product_formats import RESULT_FORMATS
from sw.array_spec import ArraySpec

__all__ = ["random_inputs", "random_operand"]

Array = npt.NDArray[Any]

_SMALL_SHARE = 1 / 64
#: For multiples of this, seeds of `random_inputs` add infinities and NaN to a float array.
_WILD_SEEDS = 4
_MOST_WILD = 3
#: Fraction of a NaN, as far as a format has room for it.
_NAN_PAYLOAD = 0x21


def _small(fmt: Format) -> list[int]:
    """Special values that leave a sum finite: both zeros, subnormals, smallest normals."""
    normal, sign = 1 << fmt.fraction_bits, 1 << (fmt.bits - 1)
    return [bits | of for bits in (0, 1, normal - 1, normal) for of in (0, sign)]


def _wild(fmt: Format) -> list[int]:
    """Values that can make a sum non-finite: largest finite ones, infinities, NaN."""
    largest, sign, nan = fmt.largest, 1 << (fmt.bits - 1), fmt.canonical_nan
    if not fmt.has_infinity:
        return [largest, largest | sign, nan, nan | sign]
    infinity = fmt.infinity
    payload = infinity | _NAN_PAYLOAD & ((1 << fmt.fraction_bits) - 1)
    fill = [] if fmt.fill_nan is None else [fmt.fill_nan]
    return [largest, largest | sign, infinity, infinity | sign, nan, payload, nan | sign, *fill]


def _special(fmt: Format) -> list[int]:
    """Both zeros, subnormals, the smallest normal, the largest value, infinities, two NaN."""
    small, wild = _small(fmt), _wild(fmt)
    chosen = [*small[:3], small[5], small[6], wild[0]]
    return chosen + ([*wild[2:4], wild[5], *wild[7:]] if fmt.has_infinity else [wild[2]])


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
        Floats: both signs, exponents over ``2 ** ±exponent_spread`` as far as the format has them,
        so that the order of a sum matters. int8: uniform over all values, −128 included.
    special_share : float
        Fraction of floats replaced by zeros, subnormals, extremes, infinities and NaN.

    Raises
    ------
    BadInputError
        If the format is not an operand format.
    """
    if fmt == int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    if fmt not in RESULT_FORMATS:
        names = ", ".join(each.name for each in RESULT_FORMATS)
        raise BadInputError(f"Format of an operand must be one of {names}, not {fmt.name}")
    width = fmt.fraction_bits
    least = max(1, fmt.bias - exponent_spread)
    most = min(fmt.largest >> width, fmt.bias + exponent_spread)
    exponents = rng.integers(least, most + 1, shape)
    fractions = rng.integers(0, 1 << width, shape)
    bits = fractions | exponents << width | rng.integers(0, 2, shape) << (fmt.bits - 1)
    # Of e4m3, the largest exponent and fraction are NaN.
    bits = np.where((bits & ((1 << fmt.bits - 1) - 1)) > fmt.largest, fmt.largest, bits)
    replaced = rng.random(shape) < special_share
    bits = np.where(replaced, rng.choice(np.array(_special(fmt)), shape), bits)
    return fmt.from_bits(bits)


def random_inputs(
    arrays: Iterable[ArraySpec],
    seed: int,
    *,
    wild: bool | None = None,
    limits: Mapping[str, int] | None = None,
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
    limits : mapping of str to int
        For an int32 array by name, the number below which its elements are, from 0 on.
    """
    rng = np.random.default_rng([seed & (2**64 - 1), 0x0DEA])
    limits = limits or {}
    drawn = {
        spec.name: rng.integers(0, limits[spec.name], spec.shape, dtype=np.int32)
        if spec.name in limits
        else _random_array(rng, spec.shape, spec.format)
        for spec in arrays
    }
    floats = [
        (fmt, array)
        for array in drawn.values()
        for fmt in RESULT_FORMATS
        if fmt.is_float and array.dtype == fmt.dtype
    ]
    if floats and (seed % _WILD_SEEDS == 0 if wild is None else wild):
        fmt, array = floats[rng.integers(len(floats))]
        chosen = array.view(f"u{fmt.bits // 8}").reshape(-1)
        places = rng.integers(0, chosen.size, rng.integers(1, _MOST_WILD + 1))
        chosen[places] = rng.choice(np.array(_wild(fmt), chosen.dtype), places.size)
    return drawn


def _random_array(rng: np.random.Generator, shape: tuple[int, ...], fmt: Format) -> Array:
    if fmt == fp32:
        return rng.standard_normal(shape, np.float32)
    if fmt == int32:
        return rng.integers(-(1 << 20), 1 << 20, shape, dtype=np.int32)
    array = random_operand(rng, shape, fmt)
    if fmt.is_float:
        bits = array.view(f"u{fmt.bits // 8}")
        replaced = rng.random(shape) < _SMALL_SHARE
        bits[replaced] = rng.choice(np.array(_small(fmt), bits.dtype), int(replaced.sum()))
    elif array.size:
        # Also in draws too small to contain it by chance.
        array.reshape(-1)[rng.integers(array.size)] = -128
    return array
