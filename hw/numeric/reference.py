"""Bit-exact numpy answers of the arithmetic, sharing nothing with the hardware.

The order is part of the answer: a sum runs in ascending k from ``acc0`` (+0 if there is none) and
every product costs one rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.numeric.formats import Format, bf16, fp32, int8, int32

__all__ = ["cast", "dot", "error_bound", "mac", "matmul"]

Array = npt.NDArray[Any]

_UNIT_ROUNDOFF = 2.0**-24
_SMALLEST_SUBNORMAL = 2.0**-149
_LARGEST = float(np.finfo(np.float32).max)


def _wide(x: Array) -> Array:
    """Convert to float64, silently: numpy warns of signalling NaN."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)


def _canonical(x: Array) -> Array:
    """Replace every NaN of an fp32 array, in place, by the canonical one."""
    nan = np.isnan(x)
    if nan.any():
        x.view(np.uint32)[nan] = fp32.canonical_nan
    return x


def _fma(acc: Array, a: Array, w: Array) -> Array:
    """Add ``a * w`` to ``acc`` (all float64) with one rounding to fp32, elementwise.

    float64 holds the product exactly, but the sum is rounded to 53 bits before the 24. That
    changes nothing as long as a product has at most 24 bits (16 here). For let the sum be inexact
    in float64 and its magnitude be about 2^e. Then the last bit of the smaller term is below
    2^(e-52), so that term, 24 bits long, is below 2^(e-28), and cannot carry the sum from the
    larger one past a midpoint of fp32 values, the nearest of which is 2^(e-25) away. Where the
    sum is subnormal in fp32 (e <= -127) the smaller term is below 2^-155: too small for any
    ``acc`` but 0, so it is the product, and the larger term, ``acc``, is 2^-150 from a midpoint.
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return _canonical((acc + a * w).astype(np.float32))


def _format(*arrays: Array) -> Format:
    """The operand format that all arrays have."""
    for format_ in (bf16, int8):
        if all(array.dtype == format_.dtype for array in arrays):
            return format_
    names = " and ".join(str(array.dtype) for array in arrays)
    raise TypeError(f"Operands must be all bfloat16 or all int8, not {names}")


def _accumulator(acc0: npt.ArrayLike | None, format_: Format, shape: tuple[int, ...]) -> Array:
    """The sums to start from, of the accumulator's format and of the shape of the answer."""
    if acc0 is None:
        return np.zeros(shape, format_.accumulator.dtype)
    acc = np.asarray(acc0)
    if acc.dtype != format_.accumulator.dtype:
        raise TypeError(
            f"Accumulator of {format_.name} products must be of "
            f"{format_.accumulator.dtype}, not {acc.dtype}"
        )
    return np.broadcast_to(acc, shape)


def mac(acc: npt.ArrayLike, a: npt.ArrayLike, w: npt.ArrayLike) -> Array:
    """Multiply and accumulate, elementwise with broadcasting: ``acc + a * w``.

    Parameters
    ----------
    acc : array of float32 or int32
        Sum so far.
    a, w : arrays of bfloat16 or int8
        Operands, of one format; bfloat16 sums in float32 (IEEE 754 fusedMultiplyAdd, ties to
        even, subnormals kept, canonical NaN), int8 in int32 (modulo 2^32).

    Raises
    ------
    TypeError
        The types are not one of the two combinations.
    """
    a, w, acc = np.asarray(a), np.asarray(w), np.asarray(acc)
    format_ = _format(a, w)
    start = _accumulator(acc, format_, np.broadcast_shapes(acc.shape, a.shape, w.shape))
    if format_.is_float:
        sums = _fma(np.atleast_1d(_wide(start)), _wide(a), _wide(w))
        return sums.reshape(start.shape)
    products = a.astype(np.int64) * w.astype(np.int64)
    return (start.astype(np.int64) + products).astype(np.int32)


def dot(a: npt.ArrayLike, b: npt.ArrayLike, acc0: npt.ArrayLike | None = None) -> Array:
    """Inner product of two vectors in ascending order, as :func:`matmul` of one row and column."""
    a, b = np.asarray(a), np.asarray(b)
    return matmul(a.reshape(1, -1), b.reshape(-1, 1), acc0).reshape(())


def matmul(a: npt.ArrayLike, b: npt.ArrayLike, acc0: npt.ArrayLike | None = None) -> Array:
    """Multiply matrices in ascending k with one rounding a product; zero sums are +0.

    Parameters
    ----------
    a : (M, K) array of bfloat16 or int8
    b : (K, N) array of the same type
    acc0 : (M, N) array of float32 or int32, or one that broadcasts to it
        Sums to start from, +0 by default.

    Returns
    -------
    (M, N) array of float32 or int32

    Raises
    ------
    TypeError
        The types are not those of :func:`mac`.
    ValueError
        The operands are not matrices with one inner extent.
    """
    a, b = np.asarray(a), np.asarray(b)
    format_ = _format(a, b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"Operands must be M x K and K x N, not {a.shape} and {b.shape}")
    acc = _accumulator(acc0, format_, (a.shape[0], b.shape[1]))
    wide_a, wide_b = _wide(a), _wide(b)
    if not format_.is_float:
        # Any order is exact in float64 up to 2^53, which takes 2^39 products.
        return (acc.astype(np.int64) + (wide_a @ wide_b).astype(np.int64)).astype(np.int32)
    sums = _canonical(acc.astype(np.float32))
    for k in range(a.shape[1]):
        sums = _fma(_wide(sums), wide_a[:, k, np.newaxis], wide_b[k])
    # -0 + 0 is +0: the sum does not tell whether K was padded by products of +0.
    return sums + np.float32(0)


def cast(x: npt.ArrayLike, format_: Format) -> Array:
    """Convert values to another format.

    fp32 to bf16 rounds to nearest even (overflow to infinity, subnormals kept, canonical NaN);
    int32 to int8 saturates; bf16 to fp32 and int8 to int32 are exact. A conversion to the same
    format changes nothing but NaN, which become canonical.

    Raises
    ------
    TypeError
        There is no such conversion.
    """
    x = np.asarray(x)
    source, target = x.dtype, format_.dtype
    if source == target and not format_.is_float:
        return x.copy()
    if source == int32.dtype and format_ == int8:
        return x.clip(-128, 127).astype(np.int8)
    if source == int8.dtype and format_ == int32:
        return x.astype(np.int32)
    if source not in (bf16.dtype, fp32.dtype) or format_ not in (bf16, fp32):
        raise TypeError(f"Cast must be between formats of one kind, not {source} to {target}")
    with np.errstate(invalid="ignore"):
        bits = _canonical(np.atleast_1d(x).astype(np.float32)).view(np.uint32)
    if format_ == bf16:
        # Adding half a unit, less one if the kept part is even, carries exactly when the
        # dropped half rounds up. The canonical NaN survives: its low half is zero.
        bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return bits.view(target).reshape(x.shape)


def error_bound(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    acc0: npt.ArrayLike | None = None,
    *,
    out: Format | None = None,
) -> Array:
    """Bound a priori on ``|matmul(a, b, acc0) - float64 matmul|``, elementwise.

    With u = 2^-24 each of the K roundings moves the sum by at most u relatively or, where the
    result is subnormal, by 2^-150; so the error is at most gamma_K (|acc0| + |a| |b|) + K 2^-150
    (1 + gamma_K), gamma_K = K u / (1 - K u). The float64 reference has such an error of its own,
    with 2^-53 and K + 1 sums, which is added. A final cast to bf16 adds 2^-8 of the magnitude,
    or 2^-134. Integers have no error.

    Parameters
    ----------
    a, b, acc0
        As for :func:`matmul`.
    out : Format
        Format the sums are cast to, the accumulator's by default.

    Returns
    -------
    (M, N) array of float64
        Infinity where nothing can be promised: an operand is not finite, the magnitudes allow
        an overflow, or an int32 could wrap or be saturated.
    """
    a, b = np.asarray(a), np.asarray(b)
    format_ = _format(a, b)
    target = format_.accumulator if out is None else out
    terms = a.shape[1]
    start = np.abs(_wide(_accumulator(acc0, format_, (a.shape[0], b.shape[1]))))
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = start + np.abs(_wide(a)) @ np.abs(_wide(b))
        if not format_.is_float:
            limit = 2.0 ** (target.bits - 1) - 1
            return np.where(magnitude <= limit, 0.0, np.inf)
        gamma = terms * _UNIT_ROUNDOFF / (1 - terms * _UNIT_ROUNDOFF)
        gamma_reference = (terms + 1) * 2.0**-53 / (1 - (terms + 1) * 2.0**-53)
        # The magnitude itself was summed in float64, hence the factor.
        magnitude *= 1 + gamma_reference
        bound = gamma * magnitude + terms * _SMALLEST_SUBNORMAL / 2 * (1 + gamma)
        reach = magnitude + bound
        if target == bf16:
            rounding = np.maximum(2.0**-8 * reach, 2.0**-134)
            bound, reach = bound + rounding, reach + rounding
        bound += gamma_reference * magnitude
        return np.where(np.isfinite(reach) & (reach <= _LARGEST), bound, np.inf)
