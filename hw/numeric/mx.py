"""Golden microscaling (OCP MX 1.0) in numpy: blocks of 32 operands along k that share a scale."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from hw.numeric.elementwise import add
from hw.numeric.formats import OPERANDS, Format
from hw.numeric.reference import add_products, cast, require_tile

__all__ = ["BLOCK", "MX_FORMATS", "SCALE", "MxMatrix", "mx_matmul", "quantise"]

Array = npt.NDArray[Any]

#: Operands that share a scale.
BLOCK = 32

#: Formats of operands with scales, and of their elements.
MX_FORMATS = MappingProxyType({each: each.element for each in OPERANDS if each.has_scale})

#: Type of scales: 2^(code - 127), NaN for code 255.
SCALE = np.dtype(ml_dtypes.float8_e8m0fnu)


class MxMatrix(NamedTuple):
    """Matrix in microscaled blocks along k: rows of a left operand, columns of a right one.

    Members
    -------
    elements : (lines, K) array of ``float8_e4m3fn``, ``float8_e5m2`` or ``float4_e2m1fn``
    scales : (lines, ceil(K / 32)) array of ``float8_e8m0fnu``
    """

    elements: Array
    scales: Array

    @property
    def values(self) -> Array:
        """Elements times their scales, exact in float64; NaN in blocks whose scale is NaN."""
        extent = self.elements.shape[1]
        with np.errstate(invalid="ignore"):
            scales = self.scales.astype(np.float64)
            elements = self.elements.astype(np.float64)
        values: Array = elements * np.repeat(scales, BLOCK, axis=1)[:, :extent]
        return values


def _require(matrix: MxMatrix) -> Format:
    elements, scales = matrix
    found = next((fmt for fmt in MX_FORMATS if fmt.dtype == elements.dtype), None)
    if found is None or scales.dtype != SCALE:
        raise BadInputError(
            f"Microscaled operands must be {', '.join(f.numpy_name for f in MX_FORMATS)} with "
            f"scales of float8_e8m0fnu, not {elements.dtype} with {scales.dtype}"
        )
    blocks = (elements.shape[0], ceil_div(elements.shape[-1], BLOCK))
    if elements.ndim != 2 or scales.shape != blocks:
        raise BadInputError(
            f"Scales of elements {elements.shape} must be one for every {BLOCK} of a line, not "
            f"{scales.shape}"
        )
    return found


def quantise(x: npt.ArrayLike, format_: Format) -> MxMatrix:
    """Quantise lines of float32 to microscaled blocks, as OCP MX 1.0, section 6.3.

    The scale is the largest power of two not above the block's largest magnitude, divided by the
    largest power of two of the element format. Elements round to nearest even and saturate.

    Parameters
    ----------
    x : (lines, K) array of float32
        A block with a value that is not finite gets the scale NaN, one of zeros the scale 2^-127.
    format_ : Format
        One of :data:`MX_FORMATS`.

    Raises
    ------
    BadInputError
        The format has no scale, or the values are not float32.
    """
    if format_ not in MX_FORMATS:
        names = ", ".join(each.name for each in MX_FORMATS)
        raise BadInputError(f"Microscaled format must be one of {names}, not {format_.name}")
    x = np.asarray(x)
    if x.dtype != np.float32 or x.ndim != 2:
        raise BadInputError(f"Values must be a matrix of float32, not {x.dtype} of shape {x.shape}")
    lines, extent = x.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, -extent % BLOCK)))
    blocks = padded.reshape(lines, -1, BLOCK)
    largest = np.abs(blocks).max(axis=2)
    finite = np.isfinite(largest)
    # frexp's significand is below 1.
    exponent = np.frexp(np.where(finite, largest, 1.0))[1] - 1
    shared = exponent - ((format_.largest >> format_.fraction_bits) - format_.bias)
    code = np.where(largest == 0, 0, np.clip(shared + 127, 0, 254))
    code = np.where(finite, code, 255).astype(np.uint8)
    places = 127 - code[..., np.newaxis].astype(np.int64)
    scaled = np.ldexp(np.where(finite[..., np.newaxis], blocks, 0.0), places)
    elements = cast(scaled.astype(np.float32), MX_FORMATS[format_], saturate=True)
    return MxMatrix(elements.reshape(lines, -1)[:, :extent], code.view(SCALE))


def _steps(sums: Array, left: Array, right: Array, count: int) -> Array:
    """Partial sums plus the products of scaled lines, one rounding per ``count`` products."""
    missing = (0, 0), (0, -left.shape[1] % count)
    left, right = np.pad(left, missing), np.pad(right, missing)
    for k in range(0, left.shape[1], count):
        factors = [(left[:, i, np.newaxis], right[:, i]) for i in range(k, k + count)]
        sums = add_products(sums.astype(np.float64), factors)
    return sums


def mx_matmul(
    a: MxMatrix, b: MxMatrix, acc0: npt.ArrayLike | None = None, *, tile: int | None = None
) -> Array:
    """Product of microscaled matrices in ascending k; zero sums are +0.

    A step is two products of 8-bit elements or four of e2m1, each exact and multiplied by both
    scales; their sum with the partial sum is rounded once to float32.

    Parameters
    ----------
    a : MxMatrix
        M rows.
    b : MxMatrix
        N columns, of elements of the same width as those of ``a``.
    acc0 : (M, N) array of float32, or one that broadcasts to it
        Initial partial sums, +0 by default.
    tile : int
        As of :func:`hw.numeric.reference.matmul`.

    Raises
    ------
    BadInputError
        The types do not match, the inner extents differ, there is not a scale for every
        block, or no such tile.
    """
    formats = _require(a), _require(b)
    if formats[0].bits != formats[1].bits:
        raise BadInputError(
            f"Operands must be of one width, not {formats[0].name} and {formats[1].name}"
        )
    if a.elements.shape[1] != b.elements.shape[1]:
        raise BadInputError(
            f"Operands must have one inner extent, not {a.elements.shape[1]} and "
            f"{b.elements.shape[1]}"
        )
    shape = (a.elements.shape[0], b.elements.shape[0])
    start = np.asarray(np.float32(0) if acc0 is None else acc0)
    if start.dtype != np.float32:
        raise BadInputError(f"Accumulator must be of float32, not {start.dtype}")
    sums = np.broadcast_to(start, shape)
    require_tile(tile, formats[0])
    count, left, right = formats[0].products_per_cycle, a.values, b.values
    if tile is None:
        sums = _steps(sums, left, right, count)
    else:
        zeros = np.zeros(shape, np.float32)
        for k in range(0, left.shape[1], tile):
            part = slice(k, k + tile)
            sums = add(sums, _steps(zeros, left[:, part], right[:, part], count) + np.float32(0))
    # As in `hw.numeric.reference.matmul`.
    total: Array = sums + np.float32(0)
    return total
