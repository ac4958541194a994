"""Random cases of a PMU that gathers or scatters by an index stream, and their results by numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hw.arch.error_codes import UnitError
from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import ENGINE_LOOPS, Access, IndexUse, Level, TokenSource
from sim.drivers.pmu_case import (
    PmuCase,
    PmuSizes,
    Vectors,
    marked,
    matrix_case,
    multicast,
    token_sources,
)
from sim.drivers.products import Array

__all__ = ["gather_case", "random_case", "scatter_case"]

#: What a vector of indices has behind those of its visit: never read.
_UNREAD = 0xDEADBEEF
_PHASE = int(Level.ADDRESS)


class _Tables(NamedTuple):
    """Ring of slots, elements of each turn (turns × elements), and their writer."""

    ring: SlotRing
    values: Array
    writer: EngineProgram
    given: Vectors


def random_case(rng: np.random.Generator, sizes: PmuSizes) -> PmuCase:
    """Matrices, a gather, or a scatter; each is as frequent."""
    return (matrix_case, gather_case, scatter_case)[rng.integers(3)](rng, sizes)


def _log2(value: int) -> int:
    return value.bit_length() - 1


def _indices(rng: np.random.Generator, visits: int, count: int, limit: int) -> Array:
    """Indices of each visit; in half of the cases some are out of range."""
    found = rng.integers(0, limit, (visits, count), dtype=np.int64)
    if rng.integers(2):
        wrong = np.array([limit, limit + 1, 1 << 31, (1 << 32) - 1])
        found = np.where(rng.random(found.shape) < 0.1, rng.choice(wrong, found.shape), found)
    return found.astype(np.uint32)


def _index_vectors(indices: Array, sizes: PmuSizes) -> Array:
    """Vectors of indices: each visit begins with a new one."""
    each = sizes.width_bits // 32
    visits, count = indices.shape
    whole = np.full((visits, -(-count // each) * each), _UNREAD, np.uint32)
    whole[:, :count] = indices
    return whole.reshape(-1, each).view(np.uint8)


def _error(indices: Array, limit: int) -> int:
    return int(UnitError.INDEX) if (indices >= limit).any() else 0


def _tables(rng: np.random.Generator, sizes: PmuSizes, size: int, elements: int) -> _Tables:
    """Slots of so many elements, written in ascending order."""
    lanes = sizes.width_bits // 8 // size
    most = min(sizes.slots, sizes.capacity_bytes // size // elements)
    count, turns = int(rng.integers(1, min(most, 3) + 1)), int(rng.integers(1, 5))
    ring = SlotRing(int(rng.integers(2)), 0, elements, count)
    data = rng.integers(0, 256, (turns, elements * size), dtype=np.uint8)
    writer = EngineProgram(
        ring,
        (LoopProgram(elements // lanes, stride=lanes),),
        element_bytes=size,
        windows=LoopProgram(turns),
    )
    given = multicast(rng, data.reshape(-1, sizes.width_bits // 8), 1, 0)
    return _Tables(ring, data.view(f"u{size}"), writer, given)


def gather_case(rng: np.random.Generator, sizes: PmuSizes) -> PmuCase:
    """R1 reads rows, columns of blocks, or words by their indices; R0 may read the slots in order.

    Rows have one or two vectors, which lie a table apart and share an index, or have one each.
    """
    kind = ("rows", "blocks", "words")[rng.integers(3)]
    bytes_ = sizes.width_bits // 8
    fits = [s for s in (1, 2, 4) if 2 * bytes_ * bytes_ // s <= sizes.capacity_bytes]
    size = 4 if kind == "words" else int(rng.choice(fits))
    lanes = bytes_ // size
    square, parts = lanes * lanes, int(rng.integers(1, 3))
    tables = _tables(rng, sizes, size, parts * square)
    turns, repeats, reads = len(tables.values), int(rng.integers(1, 3)), int(rng.integers(1, 10))
    visits = turns * repeats
    values = np.repeat(tables.values, repeats, axis=0)
    at = np.arange(visits)[:, np.newaxis]
    if kind == "rows":
        level = (_PHASE + 1, ENGINE_LOOPS)[rng.integers(2)]
        loops = [LoopProgram(reads), LoopProgram(parts, stride=square)]
        limit, shift, per_read = lanes, _log2(lanes), parts
        indices = _indices(rng, visits, reads * (parts if level == ENGINE_LOOPS else 1), limit)
        named = indices if level == ENGINE_LOOPS else np.repeat(indices, parts, axis=1)
        rows = values.reshape(visits, parts, lanes, lanes)
        part = np.tile(np.arange(parts), reads)[np.newaxis]
        found = rows[at, part, np.minimum(named, limit - 1)]
        found[named >= limit] = 0
    elif kind == "blocks":
        level, per_read = _PHASE + 1, lanes
        loops = [LoopProgram(reads), LoopProgram(lanes, stride=1)]
        limit, shift = parts, 2 * _log2(lanes)
        indices = _indices(rng, visits, reads, limit)
        blocks = values.reshape(visits, parts, lanes, lanes).swapaxes(2, 3)
        found = blocks[at, np.minimum(indices, limit - 1)]
        found[indices >= limit] = 0
    else:
        level, per_read = ENGINE_LOOPS, 1
        loops = [LoopProgram(reads)]
        limit, shift = int(rng.integers(1, parts * square + 1)), 0
        indices = _indices(rng, visits, reads * lanes, limit)
        found = values[at, np.minimum(indices, limit - 1)]
        found[indices >= limit] = 0
    read = EngineProgram(
        tables.ring,
        tuple(loops),
        element_bytes=size,
        access=Access.COLUMN if kind == "blocks" else Access.ROW,
        windows=LoopProgram(turns),
        repeats=LoopProgram(repeats),
        last_level=_PHASE,
        final_level=int(Level.LAUNCHES),
    )
    modulus = int(rng.integers(1, 4))
    index = int(rng.integers(modulus))
    indexed = IndexProgram(
        IndexUse.GATHER, limit, shift, int(level), modulus, index, kind == "words"
    )
    stream = multicast(rng, _index_vectors(indices, sizes), modulus, index)
    out = marked(np.ascontiguousarray(found).view(np.uint8).reshape(-1, bytes_), reads * per_read)
    plain = bool(rng.integers(2))
    count = {TokenSource.W0: turns, TokenSource.R1: turns}
    tokens = token_sources(rng, count | ({TokenSource.R0: turns} if plain else {}))
    readers = (tables.writer if plain else None, read)
    program = PmuProgram((tables.writer, None), readers, tokens["sources"], indexed)
    whole = tables.values.view(np.uint8).reshape(-1, bytes_)
    beside = marked(whole, 0) if plain else Vectors.none(sizes)
    return PmuCase(
        program, (tables.given, stream), (beside, out), tokens["counts"], _error(indices, limit)
    )


def scatter_case(rng: np.random.Generator, sizes: PmuSizes) -> PmuCase:
    """W0 fills slots in order, then writes rows or words by their indices, or adds them."""
    use = (IndexUse.SCATTER, IndexUse.SCATTER_ADD)[rng.integers(2)]
    words = bool(rng.integers(2))
    size = 4 if words or use is IndexUse.SCATTER_ADD else int(rng.choice([1, 2, 4]))
    bytes_ = sizes.width_bits // 8
    lanes = bytes_ // size
    rows = lanes * int(rng.integers(1, 3))
    if 2 * rows * lanes * size > sizes.capacity_bytes:
        rows = lanes
    updates, turns, count = (int(each) for each in rng.integers((2, 1, 1), (13, 6, 3)))
    count = min(count, sizes.capacity_bytes // size // (rows * lanes))
    ring = SlotRing(0, 0, rows * lanes, count)
    write = EngineProgram(
        ring,
        (
            LoopProgram(2),
            LoopProgram(rows, stride=lanes, slope=1 - rows, outer=_PHASE),
            LoopProgram(1, slope=updates - 1, outer=_PHASE),
        ),
        element_bytes=size,
        windows=LoopProgram(turns),
        beyond=Beyond(_PHASE, 1),
    )
    read = EngineProgram(
        ring,
        (LoopProgram(rows, stride=lanes),),
        element_bytes=size,
        windows=LoopProgram(turns),
        last_level=_PHASE,
        final_level=int(Level.LAUNCHES),
    )
    limit = rows * lanes if words else rows
    indices = _indices(rng, turns, updates * (lanes if words else 1), limit)
    indices[:, 1] = indices[:, 0]  # back to back in a vector of indices
    data = rng.integers(0, 256, (turns, rows + updates, bytes_), dtype=np.uint8)
    values = data.view(f"u{size}")
    slots = values[:, :rows].copy()
    for turn in range(turns):
        places = slots[turn].reshape(-1, 1 if words else lanes)
        for index, row in zip(
            indices[turn].tolist(), values[turn, rows:].reshape(-1, places.shape[1]), strict=True
        ):
            if index < limit:
                places[index] = places[index] + row if use is IndexUse.SCATTER_ADD else row
    modulus = int(rng.integers(1, 4))
    own = int(rng.integers(modulus))
    shift = 0 if words else _log2(lanes)
    indexed = IndexProgram(use, limit, shift, ENGINE_LOOPS, modulus, own, words)
    tokens = token_sources(rng, {TokenSource.W0: turns, TokenSource.R0: turns})
    program = PmuProgram((write, None), (read, None), tokens["sources"], indexed)
    given = multicast(rng, data.reshape(-1, bytes_), 1, 0)
    stream = multicast(rng, _index_vectors(indices, sizes), modulus, own)
    out = marked(slots.view(np.uint8).reshape(-1, bytes_), rows)
    return PmuCase(
        program,
        (given, stream),
        (out, Vectors.none(sizes)),
        tokens["counts"],
        _error(indices, limit),
    )
