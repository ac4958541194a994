"""Golden fused softmax in numpy: scores unit and values unit of attention, bit-exact.

A scores unit multiplies a block of keys by the queries of a group, one query for each column of
its grid; the sums are scores. It sends p = 2^(c·score − m) of a query's running maximum m, and how
far m has risen. A values unit multiplies p by values, and scales its old sums whenever m rises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.checks import refusal
from hw.arch.lanes.key_mask import KEY_BITS, KeyMask
from hw.numeric import elementwise, reference
from hw.numeric.alu import ceil
from hw.numeric.compositions import subtract
from hw.numeric.formats import bf16, fp32
from hw.numeric.functions import exp2, reciprocal

__all__ = [
    "LEAST_MAXIMUM",
    "MOST_RISE",
    "ScoreBlock",
    "ScoresModel",
    "divided",
    "normalized",
    "packet_words",
    "raised",
    "rescaled",
    "score_block",
    "score_scale",
    "seen",
]

Array = npt.NDArray[Any]

#: What the running maximum of a query begins with.
LEAST_MAXIMUM = np.float32(-(2.0**20))
#: Greatest rise of a maximum that a packet tells.
MOST_RISE = 255


class ScoreBlock(NamedTuple):
    """Results of a scores unit for a block of keys and C queries.

    Members
    -------
    rises : array of uint8, C
        m' − m of each query, at most `MOST_RISE`.
    powers : array of bf16, keys × C
        2^(c·score − m'), +0 for a key that the query does not see.
    """

    rises: Array
    powers: Array


def score_scale(scale: float) -> np.float32:
    """The factor c of scores in the domain of log2: fp32(scale · log2 e).

    Raises
    ------
    BadInputError
        If it is not positive and finite.
    """
    factor = np.float32(scale * np.log2(np.e))
    if not 0 < factor < np.inf:
        raise refusal("Scale of scores", "be positive and finite in fp32", scale)
    return factor


def seen(mask: KeyMask, *, group: int, first_row: int, rows: int, columns: int) -> Array:
    """Whether each query sees each key: Booleans, rows × columns.

    Parameters
    ----------
    mask : KeyMask
    group : int
        Number of the query group.
    first_row : int
        Keys of the group before these.
    rows, columns : int
        Keys, and queries.
    """
    number = group % mask.groups if mask.groups else group
    row = first_row + np.arange(rows, dtype=np.int64)[:, np.newaxis]
    key = _wrapped(mask.first_key + mask.key_step * number + row)
    start = mask.first_key - mask.offset + (mask.key_step - mask.query_step) * number
    distance = _wrapped(start + row)
    query = np.arange(columns)
    found = np.broadcast_to(key >= 0, (rows, columns)).copy()
    if mask.length:
        found &= key < mask.length
    if mask.causal:
        found &= distance <= query
    if mask.window:
        found &= distance > query - mask.window
    return found


def _wrapped(value: Array) -> Array:
    """Numbers as the counters hold them."""
    half = 1 << KEY_BITS - 1
    return (value + half) % (2 * half) - half


def raised(maxima: Array, old: Array, factor: np.float32) -> Array:
    """Running maxima m' of queries after a block: max(m, ⌈c · maximum⌉).

    Parameters
    ----------
    maxima : array of float32
        Greatest score of each query in the block; −∞ if there is none.
    old : array of float32
        Running maxima m.
    factor : float32
        c.
    """
    return elementwise.maximum(old, ceil(elementwise.multiply(factor, maxima)))


def score_block(
    scores: Array, old: Array, factor: np.float32, function_bits: int
) -> tuple[Array, ScoreBlock]:
    """New maxima m' of C queries after a block of keys, and the result of the block.

    Parameters
    ----------
    scores : array of float32, keys × C
        −∞ for a key that the query does not see.
    old : array of float32, C
        Running maxima m.
    factor : float32
        c.
    function_bits : int
        Significand bits of exp2.
    """
    # A score that is NaN is no maximum, but makes the power of its key, and so the row, NaN.
    counted = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    new = raised(counted.max(axis=0, initial=-np.inf), old, factor)
    rises = elementwise.to_int32(subtract(new, old)).clip(0, MOST_RISE)
    powers = exp2(elementwise.fma(factor, scores, -new), function_bits)
    return new, ScoreBlock(rises.astype(np.uint8), reference.cast(powers, bf16))


class ScoresModel:
    """Golden scores unit: blocks of scores, one after another, to powers of two.

    Parameters
    ----------
    factor : float32
        c, as of `score_scale`.
    mask : KeyMask
    columns : int
        Queries of a group.
    function_bits : int
        Significand bits of the functions.
    """

    def __init__(
        self, factor: np.float32, mask: KeyMask, *, columns: int, function_bits: int
    ) -> None:
        self._factor, self._mask, self._columns = factor, mask, columns
        self._function_bits = function_bits
        self._group, self._row = -1, 0
        self.maxima = np.full(columns, LEAST_MAXIMUM)

    def block(self, scores: Array, *, begins: bool) -> ScoreBlock:
        """Result of a block.

        Parameters
        ----------
        scores : array of float32, keys × C
        begins : bool
            Whether it is the first one of its query group.
        """
        if begins:
            self._group, self._row = self._group + 1, 0
            self.maxima = np.full(self._columns, LEAST_MAXIMUM)
        rows = len(scores)
        visible = seen(
            self._mask,
            group=self._group,
            first_row=self._row,
            rows=rows,
            columns=self._columns,
        )
        self._row += rows
        hidden = np.where(visible, scores, np.float32(-np.inf))
        self.maxima, found = score_block(hidden, self.maxima, self._factor, self._function_bits)
        return found


def packet_words(block: ScoreBlock) -> Array:
    """Vectors of a block's packet as words of uint32: the rises, then two keys a vector."""
    columns = len(block.rises)
    rises = np.zeros(4 * columns, np.uint8)
    rises[:columns] = block.rises
    bits = bf16.bits_of(block.powers).astype(np.uint16)
    odd = np.zeros((len(bits) % 2, columns), np.uint16)
    powers = np.concatenate([bits, odd]).reshape(-1, 2 * columns)
    return np.concatenate([rises.view(np.uint32)[np.newaxis], powers.view(np.uint32)])


def rescaled(sums: Array, rises: Array) -> Array:
    """Sums times 2^-rise, by their exponents.

    A rise of 0 changes nothing. Else results below 2^-126 are +0; infinities and NaN stay.

    Parameters
    ----------
    sums : array of float32, rows × C
    rises : array of uint8, C
    """
    bits = fp32.bits_of(sums).astype(np.int64)
    field = bits >> fp32.fraction_bits & 0xFF
    rise = rises.astype(np.int64)
    moved = np.where(field > rise, bits - (rise << fp32.fraction_bits), 0)
    kept = (rise == 0) | (field == 0xFF)
    return fp32.from_bits(np.where(kept, bits, moved).astype(np.uint32))


def normalized(values: Array, blocks: Iterable[ScoreBlock], function_bits: int) -> Array:
    """Rows that a values unit sends for a query group: bf16, d × C.

    Parameters
    ----------
    values : array of bf16, keys × d
        In the order of the blocks' keys.
    blocks : iterable of ScoreBlock
    function_bits : int
    """
    ones = np.ones((len(values), 1), bf16.dtype)
    # The tile's last row is ones: its sum is the denominator.
    tile = np.concatenate([values, ones], axis=1).T
    sums = np.zeros((len(tile), 1), np.float32)
    first = 0
    for block in blocks:
        keys = tile[:, first : first + len(block.powers)]
        first += len(block.powers)
        sums = reference.matmul(keys, block.powers, rescaled(sums, block.rises))
    return divided(sums, function_bits)


def divided(sums: Array, function_bits: int) -> Array:
    """Rows of sums but the last, divided by the last: bf16.

    Parameters
    ----------
    sums : array of float32, rows × C
    function_bits : int
        Significand bits of the reciprocal.
    """
    inverse = reciprocal(sums[-1], function_bits)
    return reference.cast(elementwise.multiply(sums[:-1], inverse), bf16)
