"""Gather and scatter by an index stream against a model in numpy, under stalls, and their rates."""

import random

import numpy as np
import pytest

from hw.arch.error_codes import UnitError
from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import IndexUse
from tests.hw.pmu import bench, index_model
from tests.hw.pmu.bench import Outcome, Vector, run
from tests.hw.pmu.index_programs import (
    WIDTH,
    gather,
    gather_elements,
    index_stream,
    random_indices,
    scatter,
)


def check(program: PmuProgram, inputs: tuple[list[Vector], list[Vector]], outcome: Outcome) -> None:
    sizes = {"width_bits": WIDTH, "capacity_bytes": bench.CAPACITY_BYTES}
    expected, outside = index_model.mirror(program, inputs, **sizes)
    for port in range(2):
        assert outcome.outputs[port] == expected[port]
    assert outcome.done and outcome.error == (UnitError.INDEX if outside else 0)
    assert len(outcome.given_at[1]) == len(inputs[1])
    assert sum(outcome.counters.values()) == outcome.cycles


@pytest.mark.few(3)
@pytest.mark.parametrize("case", range(6))
def test_random_gathers_equal_numpy_under_stalls(case: int, seed: int) -> None:
    rng = random.Random(seed)
    program, inputs = gather(rng, outside=0.1 * (case % 2))
    check(program, inputs, run(program, inputs, rng=rng, stall=0.2 * (case % 3), token_stall=0.2))


@pytest.mark.parametrize("use", [IndexUse.SCATTER, IndexUse.SCATTER_ADD])
@pytest.mark.parametrize("case", range(3))
def test_random_scatters_equal_numpy_under_stalls(case: int, use: IndexUse, seed: int) -> None:
    rng = random.Random(seed)
    program, inputs = scatter(rng, use, outside=0.2 * (case % 2))
    check(program, inputs, run(program, inputs, rng=rng, stall=0.2 * case))


@pytest.mark.parametrize("case", range(4))
def test_random_gathers_of_elements_equal_numpy_under_stalls(case: int, seed: int) -> None:
    rng = random.Random(seed)
    program, inputs = gather_elements(rng, outside=0.1 * (case % 2))
    check(program, inputs, run(program, inputs, rng=rng, stall=0.2 * (case % 3)))


@pytest.mark.parametrize("use", [IndexUse.SCATTER, IndexUse.SCATTER_ADD])
@pytest.mark.parametrize("case", range(3))
def test_random_scatters_of_elements_equal_numpy_under_stalls(
    case: int, use: IndexUse, seed: int
) -> None:
    rng = random.Random(seed)
    program, inputs = scatter(rng, use, outside=0.2 * (case % 2), elements=True)
    check(program, inputs, run(program, inputs, rng=rng, stall=0.2 * case))


@pytest.mark.few(1)
@pytest.mark.parametrize(("updates", "reads"), [(1, 1), (20, 30)])
def test_sums_are_stored_before_and_beside_reads(updates: int, reads: int, seed: int) -> None:
    rng = random.Random(seed)
    ring = SlotRing(0, 0, 2, 2)
    write = EngineProgram(
        ring,
        (LoopProgram(2), LoopProgram(1, slope=updates - 1, outer=4)),
        element_bytes=4,
        windows=LoopProgram(20),
        beyond=Beyond(4, 1),
    )
    read = EngineProgram(ring, (LoopProgram(reads),), element_bytes=4, windows=LoopProgram(20))
    indexed = IndexProgram(IndexUse.SCATTER_ADD, 1, 1)
    program = PmuProgram((write, None), (read, None), indexed=indexed)
    indices = index_stream(np.zeros((20, updates), np.uint32))
    inputs = (bench.vectors(bench.steps(write), rng), indices)
    check(program, inputs, run(program, inputs))


def test_a_gather_of_rows_reads_a_vector_per_cycle(seed: int) -> None:
    rng = random.Random(seed)
    ring = SlotRing(0, 0, 64, 1)
    write = EngineProgram(ring, (LoopProgram(8, stride=8),), element_bytes=1)
    read = EngineProgram(ring, (LoopProgram(200),), element_bytes=1)
    indexed = IndexProgram(IndexUse.GATHER, 8, 3)
    program = PmuProgram((write, None), (None, read), indexed=indexed)
    inputs = (bench.vectors(8, rng), index_stream(random_indices(rng, 1, 200, 8, 0.0)))
    outcome = run(program, inputs)
    check(program, inputs, outcome)
    times = outcome.taken_at[1]
    assert times[-1] - times[0] == 199
