"""Bit-exact model of the PCU: tiles of activations and weights to packets of results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.pcu import PcuProgram
from hw.numeric.elementwise import canonical
from hw.numeric.fill_nan import fill_as_zero
from hw.numeric.formats import Format, bf16
from hw.numeric.reference import cast, mac, mac_lane

__all__ = ["Passes", "results"]

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

#: Sums per block, small enough for a processor cache.
_BLOCK_SUMS = 1 << 16
#: Least and greatest sum of biased exponents at which products of bf16 are exact in fp32: the
#: last of 16 bits is not below 2^-149, the first is below 2^128.
_LEAST_EXPONENTS, _MOST_EXPONENTS = 119, 380


@dataclasses.dataclass(frozen=True)
class Passes:
    """Operands of passes of equal shape.

    Parameters
    ----------
    rows : int
        Rows of each tile.
    activations : (column passes, tiles, rows, bytes) array of uint8
    weights : (column passes, tiles, columns, bytes) array of uint8
    together : int
        Column passes of a pass: successive ones, whose results leave one after another.
    """

    rows: int
    activations: Bytes
    weights: Bytes
    together: int = 1


def _by_row(weights: Bytes, size: int) -> Bytes:
    """Convert weight vectors from row layout to one column per vector."""
    passes, tiles, columns, width = weights.shape
    elements = width // size
    rows = weights.reshape(passes, tiles, elements, columns, size)
    return np.ascontiguousarray(rows.transpose(0, 1, 3, 2, 4)).reshape(weights.shape)


def _exponents(bits: npt.NDArray[np.uint16]) -> tuple[int, int]:
    """Least and greatest biased exponent of the non-zero values; subnormals count as 1."""
    magnitude = bits & np.uint16(0x7FFF)
    most = int(magnitude.max())
    least = int((magnitude - np.uint16(1)).min()) + 1  # 0 wraps to the top
    return max(least >> 7, 1), most >> 7


def _sums(a: Array, w: Array) -> npt.NDArray[np.float32]:
    """Sums of products in ascending k with one rounding per lane.

    Where every product is exact in fp32, an fp32 multiplication and addition round once, like a
    fused operation. Other k, and lanes of two operands, use the golden arithmetic.

    Parameters
    ----------
    a : (k, passes, rows) array of a float, of 8 bits with a last axis of 2
    w : (k, passes, columns) array of the same or another float of its width, likewise

    Returns
    -------
    (passes, columns, rows) array
    """
    depth, passes, rows = a.shape[:3]
    columns = w.shape[2]
    sums = np.zeros((passes, columns, rows), np.float32)
    if a.ndim == 4:
        for k in range(depth):
            sums = mac_lane(sums, a[k, :, np.newaxis], w[k, :, :, np.newaxis])
        return sums
    product = np.empty_like(sums)
    with np.errstate(invalid="ignore"):
        wide_a, wide_w = a.astype(np.float32), w.astype(np.float32)
    exact = _exact(a, w)
    for k in range(depth):
        if exact[k]:
            np.multiply(wide_a[k, :, np.newaxis, :], wide_w[k, :, :, np.newaxis], out=product)
            np.add(sums, product, out=sums)
        else:
            sums = mac(sums, a[k, :, np.newaxis, :], w[k, :, :, np.newaxis])
    return sums


def _exact(a: Array, w: Array) -> list[bool]:
    """Per k, whether all its products are exact in fp32; without bf16 they are."""
    if a.dtype != w.dtype or a.dtype != bf16.dtype:
        return [bf16.dtype not in (a.dtype, w.dtype)] * len(a)

    def fits(left: Array, right: Array) -> bool:
        (least_a, most_a), (least_w, most_w) = (
            _exponents(bf16.bits_of(side)) for side in (left, right)
        )
        # Infinities and NaN have exponent 255 and need no rounding, but would hide the others.
        specials = most_a == 255 or most_w == 255
        return (
            not specials
            and least_a + least_w >= _LEAST_EXPONENTS
            and most_a + most_w <= _MOST_EXPONENTS
        )

    if fits(a, w):
        return [True] * len(a)
    return [fits(a[k], w[k]) for k in range(len(a))]


def _float_passes(
    passes: Passes, columns: int, formats: tuple[Format, Format]
) -> npt.NDArray[np.float32]:
    """Sums of float operands: (passes, rows, columns)."""
    count, tiles, rows, width = passes.activations.shape

    def by_k(vectors: Bytes, fmt: Format, lines: int) -> Array:
        """Operands as (k, passes, lines), those of a lane on a last axis if it has two."""
        each = fmt.products_per_cycle
        lanes = fill_as_zero(vectors.view(fmt.dtype)).reshape(count, tiles, lines, width // 2, each)
        ordered = lanes.transpose(1, 3, 0, 2, 4).reshape(tiles * width // 2, count, lines, each)
        return ordered if each > 1 else ordered[..., 0]

    a = by_k(passes.activations, formats[0], rows)
    w = by_k(passes.weights, formats[1], columns)
    out = np.empty((count, rows, columns), np.float32)
    step = max(1, _BLOCK_SUMS // (rows * columns))
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        for at in range(0, count, step):
            part = slice(at, at + step)
            sums = _sums(np.ascontiguousarray(a[:, part]), np.ascontiguousarray(w[:, part]))
            out[part] = sums.transpose(0, 2, 1)
        out += np.float32(0)  # zero sums leave as +0
    # The NaN bits of a host addition are not defined.
    return canonical(out)


def _integer_passes(passes: Passes, columns: int) -> npt.NDArray[np.int32]:
    """Sums of int8 operands, modulo 2^32: (passes, rows, columns)."""
    count, tiles, rows, width = passes.activations.shape
    # Sums of products up to 2^14 are exact below 2^24 in fp32, below 2^53 in float64.
    wide = np.float32 if tiles * width <= 1 << 10 else np.float64
    a = passes.activations.view(np.int8).transpose(0, 2, 1, 3).reshape(count, rows, tiles * width)
    w = passes.weights.view(np.int8).transpose(0, 1, 3, 2).reshape(count, tiles * width, columns)
    sums = np.matmul(a.astype(wide), w.astype(wide))
    wrapped: npt.NDArray[np.int32] = sums.astype(np.int64).astype(np.int32)
    return wrapped


def results(chip: ChipConfig, program: PcuProgram, passes: Passes) -> Bytes:
    """Result vectors of passes of one shape: (passes, vectors, bytes)."""
    columns = chip.grid_columns
    weights = passes.weights
    if program.weights_by_row:
        weights = _by_row(weights, program.fmt.bits // 8)
    passes = dataclasses.replace(passes, weights=weights)
    sums: Array
    if program.fmt.is_float:
        sums = _float_passes(passes, columns, program.operands)
    else:
        sums = _integer_passes(passes, columns)
    whole = sums.reshape(-1, passes.together * passes.rows, columns)
    return _packed(whole, program.out, chip.width_bits // 8)


def _packed(sums: Array, out: Format, width: int) -> Bytes:
    """Pack a row of 32-bit sums or two rows of 16 bits per vector; +0 follows an odd last row."""
    count, rows, columns = sums.shape
    if out.bits == 16:
        narrow = np.zeros((count, rows + rows % 2, columns), out.dtype)
        narrow[:, :rows] = cast(sums, out)
        sums = narrow
    return np.ascontiguousarray(sums).view(np.uint8).reshape(count, -1, width)
