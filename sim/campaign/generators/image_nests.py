"""Random loop nests of PMU engines: permuted, by columns, or with an affine count."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, lane_count

__all__ = ["divisor", "engine_of", "random_read", "random_write"]


def divisor(rng: random.Random, number: int, most: int) -> int:
    """A random divisor of a number, at most `most`."""
    return rng.choice([d for d in range(1, min(number, most) + 1) if number % d == 0])


def _permuted(rng: random.Random, vectors: int, lanes: int) -> list[list[int]]:
    """Loops over all vectors of a slot, in a random order of the loops."""
    counts = []
    left = vectors
    for _ in range(rng.randint(0, 3)):
        counts.append(divisor(rng, left, left))
        left //= counts[-1]
    counts.append(left)
    order = list(range(len(counts)))
    rng.shuffle(order)
    strides = [0] * len(counts)
    stride = lanes
    for index in order:
        strides[index] = stride
        stride *= counts[index]
    return [[count, stride, 0, 0] for count, stride in zip(counts, strides, strict=True)]


def _by_columns(vectors: int, lanes: int) -> list[list[int]]:
    return [[vectors // lanes, lanes * lanes, 0, 0], [lanes, 1, 0, 0]]


def _affine(rng: random.Random, vectors: int, lanes: int) -> list[list[int]]:
    """Triangular nest: the count of the inner loop grows with the outer index, or every 2^shift."""
    most = (vectors + 1) // 2
    count = rng.randint(2, min(most, 8))
    shift = rng.randint(0, 2)
    return [[count, lanes, 0, 0], [1 << shift, lanes, 1, Level.ADDRESS.value, shift]]


def random_write(
    rng: random.Random, config: ChipConfig, vectors: int, element_bytes: int
) -> dict[str, Any]:
    """Access pattern and loops of a writer that covers a slot, as fields of a case."""
    lanes = lane_count(width_bits=config.width_bits, element_bytes=element_bytes)
    if vectors % lanes == 0 and rng.random() < 0.3:
        return {"access": "COLUMN", "loops": _by_columns(vectors, lanes)}
    return {"access": "ROW", "loops": _permuted(rng, vectors, lanes)}


def random_read(
    rng: random.Random, config: ChipConfig, vectors: int, element_bytes: int, *, plain: bool
) -> dict[str, Any]:
    """Access pattern and loops of a reader of a slot, or of a triangle of it unless `plain`."""
    lanes = lane_count(width_bits=config.width_bits, element_bytes=element_bytes)
    if not plain and vectors >= 4 and rng.random() < 0.3:
        return {"access": "ROW", "loops": _affine(rng, vectors, lanes)}
    return random_write(rng, config, vectors, element_bytes)


def engine_of(
    config: ChipConfig,
    nest: Mapping[str, Any],
    ring: Mapping[str, Any],
    **outer: Any,
) -> EngineProgram:
    """Build the engine of a nest in a ring of slots.

    Parameters
    ----------
    config : ChipConfig
    nest : mapping
        ``access`` and ``loops``, as from `random_write`.
    ring : mapping
        ``element`` (bytes), ``vectors`` (of a slot), ``count`` (slots) and ``buffer``; each
        buffer has half of the scratchpad.
    outer
        Further fields of `EngineProgram`.
    """
    element = ring["element"]
    lanes = lane_count(width_bits=config.width_bits, element_bytes=element)
    half = config.pmu.capacity_bytes // 2 // element
    return EngineProgram(
        ring=SlotRing(
            buffer=ring["buffer"],
            base=ring["buffer"] * half,
            stride=ring["vectors"] * lanes if ring["count"] > 1 else 0,
            count=ring["count"],
        ),
        loops=tuple(LoopProgram(*loop) for loop in nest["loops"]),
        element_bytes=element,
        access=Access[nest["access"]],
        **outer,
    )
