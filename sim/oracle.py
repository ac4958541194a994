"""Oracle of matrix products: a second numpy model without code shared with the project.

It follows docs/numerics.md alone: ascending k from +0, one rounding to fp32 per product (per two
products of 8-bit floats, per four of e2m1), exact int32, zero sums +0, canonical NaN; an operand of
16 bits with the bits 0x7FFF is +0.
"""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["product"]

Array = npt.NDArray[Any]

# The stubs have no types for it.
_FINFO: Any = ml_dtypes.finfo


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Float64 sum and its exact rounding error (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _rounded(terms: list[Array]) -> Array:
    """Exact sum of up to three float64 terms, rounded once to fp32.

    The float64 sum is rounded to odd: if bits are lost and its last bit is 0, it moves by one unit
    towards them. An odd value of 53 bits is no fp32 value and no midpoint of two, so the second
    rounding decides as the exact sum would (Boldo and Melquiond, 2008).
    """
    plain = sum(terms[1:], terms[0])
    finite = np.isfinite(plain)
    total, lost = np.where(finite, terms[0], 0), np.zeros_like(plain)
    for term in terms[1:]:
        total, more = _two_sum(total, np.where(finite, term, 0))
        lost, least = _two_sum(lost, more)
        total, lost = _two_sum(total, lost)
        lost = lost + least
    even = total.view(np.int64) & 1 == 0
    odd = np.nextafter(total, np.copysign(np.inf, lost))
    total = np.where(even & (lost != 0), odd, total)
    return np.where(finite, total, plain).astype(np.float32)


def _operand(x: Array) -> Array:
    """Values in float64, a fill of +0."""
    values = x.astype(np.float64)
    if x.dtype.itemsize == 2:
        values[np.ascontiguousarray(x).view(np.uint16) == 0x7FFF] = 0
    return values


def _sums(a: Array, b: Array) -> Array:
    if a.dtype.kind == "i" or a.dtype == ml_dtypes.int4:
        exact = a.astype(np.int64) @ b.astype(np.int64)
        return (exact & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    step = 16 // _FINFO(a.dtype).bits
    missing = ((0, -a.shape[1] % step), (0, 0))
    left = np.pad(_operand(a).T, missing)
    right = np.pad(_operand(b), missing)
    sums = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(0, left.shape[0], step):
        products = [np.multiply.outer(left[i], right[i]) for i in range(k, k + step)]
        if step == 4:  # quarters below 144: exact
            products = [products[0] + products[1] + products[2] + products[3]]
        sums = _rounded([sums.astype(np.float64), *products])
    return sums + np.float32(0)


def product(
    a: Array, b: Array, out: npt.DTypeLike | None = None, *, tile: int | None = None
) -> Array:
    """Matrix product with exactly the bits that the hardware must produce.

    Parameters
    ----------
    a : (M, K) array of bfloat16, float16, int8, or of an 8- or 4-bit type of ml_dtypes
    b : (K, N) array of the same type, or of another float of its width
    out : dtype or None
        float32, bfloat16, float16, float8_e4m3fn or float8_e5m2 for floats, int32 for integers;
        None for the format of the sums.
    tile : int or None
        Elements of K per partial sum, which starts from +0 and is added to the previous ones with
        one rounding.

    Returns
    -------
    (M, N) array of `out`; every NaN is the positive quiet one without payload.
    """
    with np.errstate(all="ignore"):
        parts = range(0, a.shape[1], tile or a.shape[1])
        sums = [_sums(a[:, k : k + parts.step], b[k : k + parts.step]) for k in parts]
        result = sums[0]
        for part in sums[1:]:
            wide = [result.astype(np.float64), part.astype(np.float64)]
            result = _rounded(wide) + np.float32(0) if part.dtype.kind == "f" else result + part
        target = np.dtype(out or result.dtype)
        if target.itemsize == 1 and target.kind != "i":  # OCP: saturating, infinities too
            largest = float(_FINFO(target).max)
            result = np.clip(result, -largest, largest)
        result = result.astype(target)
        if target.kind in "fV":
            result[np.isnan(result)] = np.array(np.nan, target)
    return result
