"""Bit-exact model of PCUs in fused softmax: scores and values units, pass by pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.lanes.softmax_program import SoftmaxProgram
from hw.numeric import reference
from hw.numeric.formats import bf16, fp32
from hw.numeric.fused_softmax import ScoresModel, divided, packet_words, rescaled
from sw.prove.stream_packets import TilePasses

__all__ = ["scores_results", "values_results"]

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]


def scores_results(
    chip: ChipConfig, part: SoftmaxProgram, passes: TilePasses, groups: Array, sums: Bytes
) -> Bytes:
    """Vectors of the packets of all blocks.

    Parameters
    ----------
    chip : ChipConfig
    part : SoftmaxProgram
    passes : TilePasses
        A pass is a block of keys.
    groups : array of bool
        Per tile, whether it is the first of a query group.
    sums : array of uint8, vectors × bytes
        Rows of scores of all passes.
    """
    model = ScoresModel(
        np.float32(part.factor),
        part.mask,
        columns=chip.grid_columns,
        function_bits=chip.pcu.function_bits,
    )
    scores = fp32.from_bits(np.ascontiguousarray(sums).view(np.uint32))
    found = [np.zeros((0, chip.grid_columns), np.uint32)]
    first = 0
    for rows, begin in zip(passes.rows, passes.begins, strict=True):
        block = model.block(scores[first : first + rows], begins=bool(groups[begin]))
        found.append(packet_words(block))
        first += rows
    return np.concatenate(found).view(np.uint8)


def values_results(
    chip: ChipConfig, passes: TilePasses, rises: Array, activations: Bytes, weights: Bytes
) -> Bytes:
    """Vectors of the rows of all query groups.

    Parameters
    ----------
    chip : ChipConfig
    passes : TilePasses
        A pass is a query group.
    rises : array
        Per tile, the vectors of rises before its weights: 1 or 0.
    activations, weights : array of uint8, vectors × bytes
        Vectors of whole passes.
    """
    columns = chip.grid_columns
    moving = bf16.from_bits(np.ascontiguousarray(activations).view(np.uint16))
    lows = np.cumsum(rises + columns) - (rises + columns)
    starts = np.cumsum(passes.tiles.lengths) - passes.tiles.lengths
    none: Array = np.zeros(columns, np.uint8)
    found = [np.zeros((0, columns), np.uint32)]
    for rows, begin, end in zip(passes.rows, passes.begins, passes.ends, strict=True):
        sums = np.zeros((rows, columns), np.float32)
        for tile in range(begin, end):
            low = lows[tile]
            own = weights[low, :columns] if rises[tile] else none
            low += rises[tile]
            words = np.ascontiguousarray(weights[low : low + columns]).view(np.uint16)
            powers = bf16.from_bits(words.reshape(-1, columns))
            keys = moving[starts[tile] : starts[tile] + rows]
            sums = reference.matmul(keys, powers, rescaled(sums, own))
        output = divided(sums, chip.pcu.function_bits)
        even = np.pad(bf16.bits_of(output).astype(np.uint16), ((0, len(output) % 2), (0, 0)))
        found.append(even.reshape(-1, 2 * columns).view(np.uint32))
    return np.concatenate(found).view(np.uint8)
