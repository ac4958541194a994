"""Random parts of a PCU in fused softmax: their programs, streams and results by numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hw.arch.config import ChipConfig
from hw.arch.lanes.key_mask import KeyMask
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.pcu import PcuInput
from hw.numeric.formats import bf16
from hw.numeric.fused_softmax import ScoreBlock, ScoresModel, normalized, packet_words, score_scale
from hw.numeric.lane_model import VectorStream
from sim.drivers.products import Array, Words
from sim.operands import random_operand

__all__ = ["packets_of_scores", "random_key_mask", "random_scores", "random_values"]

#: Most keys of a block, in tiles of values.
_MOST_TILES = 3


def random_key_mask(rng: np.random.Generator, keys: int, groups: int) -> KeyMask:
    """A mask of any rules, near so many keys and query groups."""

    def number(most: int) -> int:
        return int(rng.integers(-most, most))

    return KeyMask(
        length=int(rng.integers(2) * rng.integers(1, keys + 1)),
        causal=bool(rng.integers(2)),
        window=int(rng.integers(2) * rng.integers(1, keys + 1)),
        offset=number(keys),
        query_step=number(8),
        first_key=number(4),
        key_step=number(8),
        groups=int(rng.integers(groups + 1)),
    )


def random_scores(rng: np.random.Generator, keys: int, groups: int) -> SoftmaxProgram:
    """Part of a scores unit with any mask; factors make scores of operands small to huge."""
    mask = random_key_mask(rng, keys, groups) if rng.integers(4) else KeyMask()
    factor = score_scale(2.0 ** float(rng.uniform(-12, 2)))
    return SoftmaxProgram(SoftmaxRole.SCORES, float(factor), mask)


def packets_of_scores(
    chip: ChipConfig, part: SoftmaxProgram, blocks: Iterable[tuple[Array, bool]]
) -> VectorStream:
    """Results of a scores unit.

    Parameters
    ----------
    chip : ChipConfig
    part : SoftmaxProgram
    blocks : iterable of (array of float32, keys × C; bool)
        Scores of each block, and whether it is the first one of its query group.
    """
    model = ScoresModel(
        np.float32(part.factor),
        part.mask,
        columns=chip.grid_columns,
        function_bits=chip.pcu.function_bits,
    )
    return _packets([packet_words(model.block(scores, begins=begins)) for scores, begins in blocks])


def random_values(
    rng: np.random.Generator, chip: ChipConfig, groups: int
) -> tuple[dict[PcuInput, VectorStream], VectorStream]:
    """Streams of a values unit, and its results: rises of any size, weights and values of any kind.

    Returns
    -------
    streams : dict
        Values and ones as activations; rises and powers as weights.
    results : VectorStream
    """
    rows = int(rng.integers(2, min(13, chip.pcu.accumulator_rows) + 1))
    tiles: list[Words] = []
    weights: list[Words] = []
    results: list[Words] = []
    passes: list[int] = []
    for _ in range(groups):
        blocks = [_random_block(rng, chip) for _ in range(rng.integers(1, 4))]
        keys = sum(len(block.powers) for block in blocks)
        values = random_operand(rng, (keys, rows - 1), bf16, special_share=0.003)
        columns = np.concatenate([values, np.ones((keys, 1), bf16.dtype)], axis=1).T
        # A tile has R keys of every row.
        tiles += list(_bits(columns).reshape(rows, -1, chip.grid_columns).swapaxes(0, 1))
        passes.append(keys // chip.grid_rows)
        weights += [packet_words(block) for block in blocks]
        with np.errstate(all="ignore"):
            found = normalized(values, blocks, chip.pcu.function_bits)
        results.append(_two_rows(found))
    activations = _packets(tiles)
    final = np.zeros(len(activations.words), bool)
    final[np.cumsum(passes) * rows - 1] = True
    streams = {
        PcuInput.ACTIVATION: activations._replace(final=final),
        PcuInput.WEIGHT: _packets(weights),
    }
    return streams, _packets(results)


def _random_block(rng: np.random.Generator, chip: ChipConfig) -> ScoreBlock:
    """Whole tiles of keys; some queries have risen, a few as far as a packet tells."""
    shape = (int(rng.integers(1, _MOST_TILES + 1)) * chip.grid_rows, chip.grid_columns)
    rises = rng.choice(np.array([0, 0, 1, 2, 7, 30, 126, 254, 255], np.uint8), shape[1])
    return ScoreBlock(rises, random_operand(rng, shape, bf16, special_share=0.003))


def _bits(values: Array) -> Words:
    """Words of rows of bf16."""
    return np.ascontiguousarray(bf16.bits_of(values).astype(np.uint16)).view(np.uint32)


def _two_rows(rows: Array) -> Words:
    """Rows of bf16, two in a vector; zeros behind an odd one."""
    padded = np.pad(rows, ((0, len(rows) % 2), (0, 0)))
    return _bits(padded.reshape(len(padded) // 2, -1))


def _packets(packets: Sequence[Words]) -> VectorStream:
    """Packets, each with `last` and `final` at its end."""
    last = np.zeros(sum(len(each) for each in packets), bool)
    last[np.cumsum([len(each) for each in packets]) - 1] = True
    return VectorStream(np.concatenate(packets), last, last)
