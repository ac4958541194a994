"""unit-h: rates of gathers of rows and of elements in a PMU; exact sums of a scatter that adds."""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import IndexUse, bit_reverse
from tests.hw.pmu import bench, index_model

#: The PMU of `small`.
WIDTH, CAPACITY, SLOTS = 256, 1 << 16, 16
WORDS = WIDTH // 32


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Benches of the PMU of `small`."""
    for name, value in (("WIDTH_BITS", WIDTH), ("CAPACITY_BYTES", CAPACITY), ("SLOTS", SLOTS)):
        monkeypatch.setattr(bench, name, value)


def stream(words):
    """Vectors of 32-bit words."""
    lines = np.asarray(words, np.uint32).reshape(-1, WORDS)
    return [(line.tobytes(), False, False) for line in lines]


def cycles(program, inputs, port=1, stall=0.0):
    """Cycles from the first vector of an output to the last one, which equal the model's."""
    outcome = bench.run(program, inputs, stall=stall, rng=random.Random(1), limit=60_000)
    expected, outside = index_model.mirror(
        program, inputs, width_bits=WIDTH, capacity_bytes=CAPACITY
    )
    assert outcome.outputs[port] == expected[port]
    assert outcome.done and not outcome.error and not outside
    return outcome.taken_at[port][-1] - outcome.taken_at[port][0] + 1


def table(vectors, read, indexed):
    """Program with one slot of so many vectors of words, and a read engine that gathers."""
    ring = SlotRing(0, 0, 0, 1)
    write = EngineProgram(ring, (LoopProgram(vectors, stride=WORDS),), element_bytes=4)
    return PmuProgram((write, None), (None, dataclasses.replace(read, ring=ring)), indexed=indexed)


@pytest.mark.slow
@pytest.mark.must("unit-h", goal=">= 0.98 vector per cycle, gather of rows in a PMU")
@pytest.mark.parametrize("parts", [1, 4])
def test_rows_are_gathered_at_a_vector_per_cycle(parts, seed, figure):
    rng = np.random.default_rng(seed)
    rows, reads = 64, 512
    read = EngineProgram(
        SlotRing(), (LoopProgram(reads), LoopProgram(parts, stride=WORDS)), element_bytes=4
    )
    shift = (WORDS * parts).bit_length() - 1
    program = table(rows * parts, read, IndexProgram(IndexUse.GATHER, rows, shift, level=5))
    data = rng.integers(0, 1 << 32, rows * parts * WORDS, dtype=np.uint32)
    inputs = stream(data), stream(rng.integers(0, rows, reads))
    rate = reads * parts / cycles(program, inputs)
    figure(f"{rate:.3f} vector per cycle, rows of {parts} vectors")
    assert rate >= 0.98


@pytest.mark.slow
@pytest.mark.must("unit-h", goal=">= 0.9 of the balls-in-bins bound, gather of elements in a PMU")
@pytest.mark.parametrize("size", [64, 4096])
def test_elements_are_gathered_as_fast_as_their_banks_allow(size, seed, figure):
    """Bound: a bank of words reads one of them per cycle, so a vector takes as many cycles as the
    bank with most of its W/32 indices has."""
    rng = np.random.default_rng(seed)
    reads = 600
    read = EngineProgram(SlotRing(), (LoopProgram(reads),), element_bytes=4)
    program = table(size // WORDS, read, IndexProgram(IndexUse.GATHER, size, 0, elements=True))
    indices = rng.integers(0, size, (reads, WORDS))
    reverse = np.array([bit_reverse(row, WORDS.bit_length() - 1) for row in range(WORDS)])
    banks = (indices % WORDS) ^ reverse[indices // WORDS % WORDS]
    bound = reads * WORDS / sum(np.bincount(line).max() for line in banks)
    balls = rng.integers(0, WORDS, (20_000, WORDS))
    drawn = WORDS / np.mean([np.bincount(line).max() for line in balls])
    inputs = stream(rng.integers(0, 1 << 32, size, dtype=np.uint32)), stream(indices)
    rate = reads * WORDS / cycles(program, inputs)
    figure(f"{rate:.2f} elements per cycle, {rate / bound:.3f} of the bound, {size} words")
    assert rate >= 0.9 * bound
    assert rate >= 0.9 * drawn


@pytest.mark.slow
@pytest.mark.must("unit-h", goal="scatter with add exact for duplicates in a PMU")
@pytest.mark.parametrize("elements", [False, True])
def test_duplicates_are_added_exactly(elements, seed, figure):
    """One index 300 times, then few ones at random: in a vector, back to back, and with stalls."""
    rng = np.random.default_rng(seed)
    rows, updates, passes = 16, 300, 2
    ring = SlotRing(0, 0, rows * WORDS, 2)
    loops = (
        LoopProgram(2),
        LoopProgram(rows, stride=WORDS, slope=1 - rows, outer=4),
        LoopProgram(1, slope=updates - 1, outer=4),
    )
    turns = {"element_bytes": 4, "windows": LoopProgram(passes)}
    write = EngineProgram(ring, loops, beyond=Beyond(4, 1), **turns)
    read = EngineProgram(ring, (LoopProgram(rows, stride=WORDS),), **turns)
    limit, shift = (rows * WORDS, 0) if elements else (rows, 3)
    indexed = IndexProgram(IndexUse.SCATTER_ADD, limit, shift, elements=elements)
    program = PmuProgram((write, None), (read, None), indexed=indexed)
    count = updates * WORDS if elements else -(-updates // WORDS) * WORDS
    indices = np.stack([np.full(count, limit - 1), rng.integers(0, 3, count)])
    start = rng.integers(0, 1 << 32, (passes, rows, WORDS), dtype=np.uint32)
    added = rng.integers(0, 1 << 32, (passes, updates, WORDS), dtype=np.uint32)
    data = np.concatenate([start, added], axis=1)
    for stall in (0.0, 0.4):
        cycles(program, (stream(data), stream(indices)), port=0, stall=stall)
    figure(f"{passes * updates * (WORDS if elements else 1)} updates of 4 indices, equal to numpy")
