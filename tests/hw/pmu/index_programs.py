"""Random programs of PMUs that gather or scatter, with their input streams."""

import dataclasses
import random

import numpy as np

from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import ENGINE_LOOPS, Access, IndexUse, Level, TokenSource
from tests.hw.pmu import bench
from tests.hw.pmu.bench import Vector

__all__ = ["WIDTH", "gather", "gather_elements", "index_stream", "random_indices", "scatter"]

WIDTH = bench.WIDTH_BITS
INDICES = WIDTH // 32


def index_stream(indices: np.ndarray, packet: int = 4) -> list[Vector]:
    """Vectors of indices, one row per visit, padded to whole vectors by what must not be read."""
    visits, count = indices.shape
    whole = np.full((visits, -(-count // INDICES) * INDICES), 0xDEADBEEF, np.uint32)
    whole[:, :count] = indices
    words = whole.reshape(-1, INDICES)
    return [(line.tobytes(), i % packet == packet - 1, False) for i, line in enumerate(words)]


def random_indices(
    rng: random.Random, visits: int, count: int, limit: int, outside: float
) -> np.ndarray:
    def one() -> int:
        if rng.random() < outside:
            return rng.choice([limit, limit + 1, 1 << 31, (1 << 32) - 1, limit + (1 << 16)])
        return rng.randrange(limit)

    found = np.array([[one() for _ in range(count)] for _ in range(visits)], np.uint32)
    if outside:
        found[0, 0] = limit
    return found


def gather(
    rng: random.Random, *, outside: float = 0.0
) -> tuple[PmuProgram, tuple[list[Vector], list[Vector]]]:
    """Tables of rows of one to three vectors, one per slot, read by random rows or blocks."""
    size = rng.choice([1, 2, 4])
    lanes = WIDTH // 8 // size
    columns = rng.choice([Access.ROW, Access.COLUMN])
    blocks, turns, count = rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 2)
    parts = rng.randint(1, 2)  # vectors of a row lie a table apart
    square = lanes * lanes
    ring = SlotRing(0, square * rng.randint(0, 1), 4 * square if size < 4 else 16 * square, count)
    if size == 1:
        ring, blocks, parts = SlotRing(0, 64 * rng.randint(0, 2), 384, count), 2, 2
    write = EngineProgram(
        ring,
        (LoopProgram(blocks * lanes * parts, stride=lanes),),
        element_bytes=size,
        windows=LoopProgram(turns),
    )
    rows, repeats = rng.randint(1, 9), rng.randint(1, 2)
    if columns is Access.ROW:
        loops = (LoopProgram(rows), LoopProgram(parts, stride=blocks * square))
        limit, shift = blocks * lanes, lanes.bit_length() - 1
    else:
        loops = (LoopProgram(rows), LoopProgram(lanes, stride=1))
        limit, shift = blocks * parts, 2 * (lanes.bit_length() - 1)
    level = rng.choice([Level.ADDRESS + 1, ENGINE_LOOPS])
    read = EngineProgram(
        ring,
        loops,
        element_bytes=size,
        access=columns,
        windows=LoopProgram(turns),
        repeats=LoopProgram(repeats),
        last_level=rng.choice([None, 4, 5]),
        beyond=rng.choice([None, Beyond(rng.choice([4, 5]), rng.randint(0, 2), 0x01020304)]),
    )
    modulus = rng.randint(1, 2)
    index = rng.randrange(modulus)
    indexed = IndexProgram(IndexUse.GATHER, limit, shift, int(level), modulus, index)
    other = EngineProgram(ring, write.loops, element_bytes=size, windows=LoopProgram(turns))
    program = PmuProgram(
        (write, None), (rng.choice([other, None]), read), (TokenSource.OFF, TokenSource.R1), indexed
    )
    per_visit = rows * (loops[1].base if level == ENGINE_LOOPS else 1)
    words = random_indices(rng, turns * repeats, per_visit, limit, outside)
    stream = index_stream(words, packet=1)
    for _ in range(1, modulus):  # what the filter leaves out
        stream = [v for vector in stream for v in (vector, (b"\xff" * len(vector[0]), True, False))]
    if index:
        stream = [(b"\xff" * (WIDTH // 8), True, False), *stream][: len(stream)]
    return program, (bench.vectors(bench.steps(write), rng), stream)


def gather_elements(
    rng: random.Random, *, outside: float = 0.0
) -> tuple[PmuProgram, tuple[list[Vector], list[Vector]]]:
    """Tables of words in slots; each step of R1 reads random words of them."""
    lanes = WIDTH // 32
    limit, turns, count = rng.randint(1, 32), rng.randint(1, 4), rng.randint(1, 2)
    whole = 1 << (limit - 1).bit_length()
    size = max(whole, lanes)
    ring = SlotRing(0, size * rng.randint(0, 2), size, count)
    write = EngineProgram(
        ring,
        (LoopProgram(size // lanes, stride=lanes),),
        element_bytes=4,
        windows=LoopProgram(turns),
    )
    reads, repeats = rng.randint(1, 9), rng.randint(1, 2)
    read = EngineProgram(
        ring,
        (LoopProgram(reads),),
        element_bytes=4,
        windows=LoopProgram(turns),
        repeats=LoopProgram(repeats),
        last_level=4,
    )
    indexed = IndexProgram(IndexUse.GATHER, limit, 0, elements=True)
    other = dataclasses.replace(write, last_level=8)
    program = PmuProgram((write, None), (rng.choice([other, None]), read), indexed=indexed)
    words = random_indices(rng, turns * repeats, reads * lanes, limit, outside)
    return program, (bench.vectors(bench.steps(write), rng), index_stream(words))


def scatter(
    rng: random.Random, use: IndexUse, *, outside: float = 0.0, elements: bool = False
) -> tuple[PmuProgram, tuple[list[Vector], list[Vector]]]:
    """Slots that are filled in order, then written at random rows, duplicates among them."""
    size = 4 if elements or use is IndexUse.SCATTER_ADD else rng.choice([1, 2, 4])
    lanes = WIDTH // 8 // size
    rows = lanes * rng.randint(1, 2)
    updates, turns, count = rng.randint(2, 12), rng.randint(1, 5), rng.randint(1, 2)
    ring = SlotRing(0, 0, rows * lanes, count)
    phase = int(Level.ADDRESS)
    write = EngineProgram(
        ring,
        (
            LoopProgram(2),
            LoopProgram(rows, stride=lanes, slope=1 - rows, outer=phase),
            LoopProgram(1, slope=updates - 1, outer=phase),
        ),
        element_bytes=size,
        windows=LoopProgram(turns),
        beyond=Beyond(phase, 1),
    )
    reader = EngineProgram(
        ring,
        (LoopProgram(rows, stride=lanes),),
        element_bytes=size,
        windows=LoopProgram(turns),
        last_level=phase,
    )
    limit = rows * lanes if elements else rows
    shift = 0 if elements else lanes.bit_length() - 1
    indexed = IndexProgram(use, limit, shift, elements=elements)
    program = PmuProgram((write, None), (reader, None), indexed=indexed)
    words = random_indices(rng, turns, updates * (lanes if elements else 1), limit, outside)
    words[:, 1] = words[:, 0]  # back to back in a vector of indices
    return program, (bench.vectors(bench.steps(write), rng), index_stream(words))
