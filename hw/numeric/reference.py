"""Golden matrix arithmetic and casts in numpy: bit-exact, sharing no code with the hardware.

The order of summation is part of the result: a sum runs in ascending k from ``acc0`` (+0 if there
is none). There is one rounding per product of 16-bit floats, per two products of 8-bit floats, and
per four products of e2m1. An operand that is `Format.fill_nan` counts as +0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from hw.numeric.elementwise import add, canonical, from_int32, to_int32
from hw.numeric.fill_nan import fill_as_zero
from hw.numeric.formats import OPERANDS, Format, fp32, int32
from hw.numeric.rounding import round_sum

__all__ = [
    "add_products",
    "cast",
    "dot",
    "error_bound",
    "mac",
    "mac_lane",
    "matmul",
    "require_tile",
]

Array = npt.NDArray[Any]

_UNIT_ROUNDOFF = 2.0**-24
_SMALLEST_SUBNORMAL = 2.0**-149

_OPERANDS = tuple(each for each in OPERANDS if not each.has_scale)
_FLOATS = (*(each for each in _OPERANDS if each.is_float), fp32)
_INTEGERS = (*(each for each in _OPERANDS if not each.is_float), int32)


def _wide(x: Array) -> Array:
    """Convert to float64 without numpy's warning about signalling NaN."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)


def _factor(x: Array) -> Array:
    """Convert an operand of products to float64; the NaN of a fill is +0."""
    return _wide(fill_as_zero(x))


def _fma(acc: Array, a: Array, w: Array) -> Array:
    """Add ``a * w`` to ``acc`` (all float64) with one rounding to fp32, elementwise.

    float64 holds the product exactly, but the sum is rounded to 53 bits and then to 24. That
    changes nothing as long as a product has at most 24 bits (22 here). Let the sum be inexact in
    float64 and its magnitude be about 2^e. Then the last bit of the smaller term is below
    2^(e-52). So that term, 24 bits long, is below 2^(e-28), and cannot carry the sum from the
    larger one past a midpoint of fp32 values, the nearest of which is 2^(e-25) away. Where the
    sum is subnormal in fp32 (e <= -127) the smaller term is below 2^-155: too small for any
    ``acc`` but 0. So it is the product, and the larger term, ``acc``, is 2^-150 from a midpoint.
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return canonical((acc + a * w).astype(np.float32))


def _format(a: Array, w: Array) -> Format:
    """Operand format of two arrays: the first's; the second may be another float of its width."""
    formats = [f for array in (a, w) for f in _OPERANDS if f.dtype == array.dtype]
    if len(formats) == 2:
        first, second = formats
        if first == second or (first.is_float and second.is_float and first.bits == second.bits):
            return first
    raise BadInputError(
        f"Operands must be of one of {', '.join(f.numpy_name for f in _OPERANDS)}, or of two "
        f"floats of one width, not {a.dtype} and {w.dtype}"
    )


def _accumulator(acc0: npt.ArrayLike | None, format_: Format, shape: tuple[int, ...]) -> Array:
    """Initial partial sums, of the accumulator's format and of the shape of the result."""
    if acc0 is None:
        return np.zeros(shape, format_.accumulator.dtype)
    acc = np.asarray(acc0)
    if acc.dtype != format_.accumulator.dtype:
        raise BadInputError(
            f"Accumulator of {format_.name} products must be of "
            f"{format_.accumulator.dtype}, not {acc.dtype}"
        )
    return np.broadcast_to(acc, shape)


def mac(acc: npt.ArrayLike, a: npt.ArrayLike, w: npt.ArrayLike) -> Array:
    """Multiply and accumulate, elementwise with broadcasting: ``acc + a * w``.

    Parameters
    ----------
    acc : array of float32 or int32
        Partial sum.
    a, w : arrays of one operand format, or of two float formats of one width
        Floats sum in float32 (IEEE 754 fusedMultiplyAdd, ties to even, subnormals kept,
        canonical NaN), integers in int32 (modulo 2^32).

    Raises
    ------
    BadInputError
        The types do not match.
    """
    a, w, acc = np.asarray(a), np.asarray(w), np.asarray(acc)
    format_ = _format(a, w)
    start = _accumulator(acc, format_, np.broadcast_shapes(acc.shape, a.shape, w.shape))
    if format_.is_float:
        sums = _fma(np.atleast_1d(_wide(start)), _factor(a), _factor(w))
        return sums.reshape(start.shape)
    products = a.astype(np.int64) * w.astype(np.int64)
    return (start.astype(np.int64) + products).astype(np.int32)


def add_products(acc: Array, factors: list[tuple[Array, Array]]) -> Array:
    """Add two or four products to ``acc`` (all float64) with one rounding to fp32, elementwise.

    Four must be of e2m1, also with one scale: their sum is then exact in float64.
    """
    with np.errstate(invalid="ignore"):
        products = [a * w for a, w in factors]
        if len(products) == 2:
            return canonical(round_sum(acc, *products))
        # Exact: whole numbers of quarters. A fixed-point number has no -0.
        return canonical(round_sum(acc, sum(products, np.zeros_like(acc))))


def mac_lane(acc: npt.ArrayLike, a: npt.ArrayLike, w: npt.ArrayLike) -> Array:
    """Multiply the operands of two lanes and accumulate: ``acc + sum(a[..., i] * w[..., i])``.

    The exact sum of the terms, three of 8-bit floats or five of e2m1, is rounded once to float32.
    A zero sum of 8-bit floats is -0 if all three terms are; of e2m1 it is +0. Of integers the sum
    is taken modulo 2^32.

    Parameters
    ----------
    acc, a, w
        As for :func:`mac`, but operands of 8 or 4 bits, with a last axis of 2 or 4 more than
        ``acc``.

    Raises
    ------
    BadInputError
        The types do not match or are of 16 bits, or the last axis is not the operands of a
        lane.
    """
    a, w, acc = np.asarray(a), np.asarray(w), np.asarray(acc)
    format_ = _format(a, w)
    count = format_.products_per_cycle
    if count == 1:
        raise BadInputError(f"Operands of a lane must be of 8 or 4 bits, not {a.dtype}")
    if a.shape[-1:] != (count,) or w.shape[-1:] != (count,):
        raise BadInputError(
            f"Last axes of operands must be the {count} of a lane, not {a.shape} and {w.shape}"
        )
    if not format_.is_float:
        for index in range(count):
            acc = mac(acc, a[..., index], w[..., index])
        return acc
    shape = np.broadcast_shapes(acc.shape, a.shape[:-1], w.shape[:-1])
    start = np.atleast_1d(_wide(_accumulator(acc, format_, shape)))
    wide_a, wide_w = _wide(a), _wide(w)
    sums = add_products(start, [(wide_a[..., i], wide_w[..., i]) for i in range(count)])
    return sums.reshape(shape)


def dot(a: npt.ArrayLike, b: npt.ArrayLike, acc0: npt.ArrayLike | None = None) -> Array:
    """Inner product of two vectors in ascending order, as :func:`matmul` of one row and column."""
    a, b = np.asarray(a), np.asarray(b)
    return matmul(a.reshape(1, -1), b.reshape(-1, 1), acc0).reshape(())


def require_tile(tile: int | None, format_: Format) -> None:
    """Refuse a tile that would split the products of a lane.

    Raises
    ------
    BadInputError
        It would.
    """
    each = format_.products_per_cycle
    if tile is not None and (tile < 1 or tile % each):
        raise BadInputError(
            f"Tile of {format_.name} must be a positive multiple of {each}, not {tile}"
        )


def matmul(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    acc0: npt.ArrayLike | None = None,
    *,
    tile: int | None = None,
) -> Array:
    """Product of matrices in ascending k; zero sums are +0.

    16-bit floats round once per product, 8-bit floats once per two (k = 0 and 1, 2 and 3, and so
    on), e2m1 once per four; if K ends within such a group, products of +0 complete it.

    Parameters
    ----------
    a : (M, K) array of an operand format
    b : (K, N) array of the same type, or of another float of its width
    acc0 : (M, N) array of float32 or int32, or one that broadcasts to it
        Initial partial sums, +0 by default.
    tile : int
        Elements of the inner extent that are summed from +0 and then added to the partial sum of
        the elements before, with one rounding; a multiple of the products of a lane. By default
        one sum runs over all of k.

    Returns
    -------
    (M, N) array of float32 or int32

    Raises
    ------
    BadInputError
        The types are not those of :func:`mac`, the operands are not matrices with one inner
        extent, or there is no such tile.
    """
    a, b = np.asarray(a), np.asarray(b)
    format_ = _format(a, b)
    require_tile(tile, format_)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise BadInputError(f"Operands must be M x K and K x N, not {a.shape} and {b.shape}")
    acc = _accumulator(acc0, format_, (a.shape[0], b.shape[1]))
    if tile is not None and format_.is_float:
        acc = canonical(acc.astype(np.float32))
        for k in range(0, a.shape[1], tile):
            acc = add(acc, matmul(a[:, k : k + tile], b[k : k + tile]))
        return acc + np.float32(0)
    wide_a, wide_b = _factor(a), _factor(b)
    if not format_.is_float:
        # Any order is exact in float64 up to 2^53, which takes 2^39 products.
        return (acc.astype(np.int64) + (wide_a @ wide_b).astype(np.int64)).astype(np.int32)
    sums = canonical(acc.astype(np.float32))
    count = format_.products_per_cycle
    if count > 1:
        missing = -a.shape[1] % count
        wide_a = np.pad(wide_a, ((0, 0), (0, missing)))
        wide_b = np.pad(wide_b, ((0, missing), (0, 0)))
        for k in range(0, wide_a.shape[1], count):
            lane = range(k, k + count)
            factors = [(wide_a[:, i, np.newaxis], wide_b[i]) for i in lane]
            sums = add_products(_wide(sums), factors)
        return sums + np.float32(0)
    for k in range(a.shape[1]):
        sums = _fma(_wide(sums), wide_a[:, k, np.newaxis], wide_b[k])
    # -0 + 0 is +0: the sum does not depend on padding K by products of +0.
    return sums + np.float32(0)


def _narrow(magnitude: Array, format_: Format, saturate: bool) -> Array:
    """Bits of fp32 magnitudes (as bits, no NaN) rounded to a shorter float."""
    field = np.maximum(magnitude >> fp32.fraction_bits, 1)
    hidden = (magnitude >= 1 << fp32.fraction_bits).astype(np.int64) << fp32.fraction_bits
    significand = (magnitude & ((1 << fp32.fraction_bits) - 1)) | hidden
    # Exponent field of the result before rounding; from 1 down it is subnormal and drops more bits.
    target = field - fp32.bias + format_.bias
    drop = fp32.fraction_bits - format_.fraction_bits + np.maximum(1 - target, 0)
    drop = np.minimum(drop, fp32.significand_bits + 1)
    half = np.int64(1) << (drop - 1)
    # Half a unit less one, plus one if the kept part is odd, carries if the rest rounds up.
    kept = (significand + half - 1 + (significand >> drop & 1)) >> drop
    bits = ((np.maximum(target, 1) - 1) << format_.fraction_bits) + kept
    # The code after the largest value is infinity, or NaN where there is none.
    bounded: Array = np.minimum(bits, format_.largest + (0 if saturate else 1))
    return bounded


def cast(x: npt.ArrayLike, format_: Format, *, saturate: bool | None = None) -> Array:
    """Cast of values to another format.

    Floats round to nearest even; subnormals are kept, NaN become canonical. Values that are too
    large, infinities included, become infinity (NaN in e4m3, which has none) or, if saturated, the
    largest finite value. e2m1, which has neither, always saturates, and NaN become its largest
    value. Integers saturate. To a longer format the conversion is exact.

    Between floats and integers it goes by fp32 and int32: a float rounds to the nearest int32,
    ties to even, saturates, and NaN become 0; an int32 rounds to fp32, ties to even.

    Parameters
    ----------
    x : array
    format_ : Format
    saturate : bool
        Whether floats saturate: OCP's two modes of conversion. By default only floats of 8 and
        4 bits saturate.

    Raises
    ------
    BadInputError
        There is no such conversion.
    """
    x = np.asarray(x)
    source, target = x.dtype, format_.dtype
    whole = any(source == each.dtype for each in _INTEGERS)
    known = whole or any(source == each.dtype for each in _FLOATS)
    if not known or format_ not in (*_INTEGERS, *_FLOATS):
        raise BadInputError(f"Cast must be between formats of numbers, not {source} to {target}")
    if format_ in _INTEGERS:
        x = x if whole else to_int32(x.astype(np.float32))
        return x.astype(np.int64).clip(-format_.largest - 1, format_.largest).astype(target)
    x = from_int32(x.astype(np.int32)) if whole else x
    saturate = format_.bits <= 8 if saturate is None else saturate
    if not saturate and not format_.has_nan:
        raise BadInputError(f"Cast to {format_.name} must saturate: it has no infinity and no NaN")
    with np.errstate(invalid="ignore"):
        values = canonical(np.atleast_1d(x).astype(np.float32))
    if format_ == fp32:
        if saturate:
            largest = fp32.from_bits(fp32.largest)
            values = np.clip(values, -largest, largest)
        return values.reshape(x.shape)
    wide = values.view(np.uint32).astype(np.int64)
    bits = _narrow(wide & 0x7FFFFFFF, format_, saturate)
    bits |= (wide >> 31) << (format_.bits - 1)
    nan = format_.canonical_nan if format_.has_nan else format_.largest
    bits = np.where(np.isnan(values), nan, bits)
    return format_.from_bits(bits).reshape(x.shape)


def error_bound(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    acc0: npt.ArrayLike | None = None,
    *,
    out: Format | None = None,
    tile: int | None = None,
) -> Array:
    """A priori bound of ``|matmul(a, b, acc0, tile=tile) - float64 matmul|``, elementwise.

    With u = 2^-24 each of n roundings (K over the products of a lane) moves the sum by at most u
    relatively or, where the result is subnormal, by 2^-150. So the error is at most gamma_n
    (|acc0| + |a| |b|) + n 2^-150 (1 + gamma_n), gamma_n = n u / (1 - n u). In tiles a product
    passes the roundings of its tile and one more per tile, so gamma_p stands for gamma_n with
    p = tile over the products of a lane + K / tile. Sums of two fp32 are exact where they are
    subnormal. The float64 product has such an error of its own, with 2^-53 and K + 1 sums, which
    is added. A final cast adds half a unit of its format: to bf16 2^-8 of the magnitude, or
    2^-134. Integers have no error.

    Parameters
    ----------
    a, b, acc0, tile
        As for :func:`matmul`.
    out : Format
        Format the sums are cast to, the accumulator's by default.

    Returns
    -------
    (M, N) array of float64
        Infinity where there is no bound: an operand is not finite, the magnitudes allow an
        overflow, or an int32 could wrap or be saturated.
    """
    a, b = np.asarray(a), np.asarray(b)
    format_ = _format(a, b)
    require_tile(tile, format_)
    target = format_.accumulator if out is None else out
    terms = a.shape[1]
    start = np.abs(_wide(_accumulator(acc0, format_, (a.shape[0], b.shape[1]))))
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = start + np.abs(_wide(a)) @ np.abs(_wide(b))
        if not format_.is_float:
            limit = 2.0 ** (target.bits - 1) - 1
            return np.where(magnitude <= limit, 0.0, np.inf)
        roundings = ceil_div(terms, format_.products_per_cycle)
        passed = roundings
        if tile is not None:
            passed = min(roundings, tile // format_.products_per_cycle) + ceil_div(terms, tile)
        gamma = passed * _UNIT_ROUNDOFF / (1 - passed * _UNIT_ROUNDOFF)
        gamma_reference = (terms + 1) * 2.0**-53 / (1 - (terms + 1) * 2.0**-53)
        # The magnitude itself is a float64 sum with its own error, hence the factor.
        magnitude *= 1 + gamma_reference
        bound = gamma * magnitude + roundings * _SMALLEST_SUBNORMAL / 2 * (1 + gamma)
        reach = magnitude + bound
        if target != fp32:
            smallest = 2.0 ** (1 - target.bias - target.fraction_bits)
            rounding = np.maximum(2.0**-target.significand_bits * reach, smallest / 2)
            bound, reach = bound + rounding, reach + rounding
        bound += gamma_reference * magnitude
        largest = float(target.from_bits(target.largest).astype(np.float64))
        return np.where(np.isfinite(reach) & (reach <= largest), bound, np.inf)
