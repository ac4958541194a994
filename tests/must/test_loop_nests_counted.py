"""unit-f: counts of loop nests in RTL, in the model and in the arrays of the liveness proof."""

import itertools
import random

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.boxes.issuer_program import ISSUER_LOOPS
from hw.arch.loops import COUNT_BITS, STEP_BITS
from hw.arch.words.pmu_word import ENGINE_LOOPS
from tests.hw.lib.nest_bench import (
    LONG,
    ChainStand,
    NestSize,
    array_steps,
    chain_steps,
    model_steps,
    small_nests,
)
from tests.native.stream_model import StreamModel

#: Chains of an issuer and of an engine of the largest scratchpad.
SIZES = {
    "issuer": NestSize(ISSUER_LOOPS, STEP_BITS, 4),
    "engine": NestSize(ENGINE_LOOPS, 22, 3),
}
NESTS = 50_000


@pytest.mark.slow
@pytest.mark.must("unit-f", goal=">= 1e5 random nests: RTL = Python = array form")
@pytest.mark.parametrize("kind", SIZES)
def test_random_nests_take_the_same_steps(kind, seed, heavy, figure):
    """Slopes, shifts, empty loops and repeats; all flags and offsets, under stalls."""
    size = SIZES[kind]
    rng = random.Random(seed)
    sizes = {"loops": size.loops, "offset_bits": size.offset_bits}
    stand = ChainStand(count_bits=COUNT_BITS, **sizes)
    nests = list(itertools.islice(small_nests(rng, size), NESTS))
    expected = model_steps(nests, **sizes)
    assert np.array_equal(array_steps(nests, **sizes), expected)
    with StreamModel(emit(stand), stand) as model:
        steps = chain_steps(model, stand.layout, nests, len(expected), seed=seed, stall=0.2)
    assert np.array_equal(steps, expected)
    loops = [loop for program, _ in nests for loop in program.loops]
    shifted, repeated = sum(loop.shift > 0 for loop in loops), sum(n > 1 for _, n in nests)
    empty = NESTS - len(np.unique(expected[:, 0]))
    assert min(shifted, repeated, empty) > NESTS / 20
    figure(
        f"{NESTS} nests, {len(expected)} steps, {shifted} shifted loops, "
        f"{repeated} repeated, {empty} without a step: 0 wrong"
    )


@pytest.mark.slow
@pytest.mark.must("unit-f", goal="no count wrong at 2^16")
@pytest.mark.parametrize("kind", SIZES)
def test_no_count_is_wrong_at_the_ends_of_the_fields(kind, seed, heavy, figure):
    """Indices to 65,534, sums from -65,536 to 65,535, shifts of 0 to 7."""
    size = SIZES[kind]
    sizes = {"loops": size.loops, "offset_bits": size.offset_bits}
    stand = ChainStand(count_bits=COUNT_BITS, **sizes)
    steps = 0
    with StreamModel(emit(stand), stand) as model:
        for nest in LONG.values():
            expected = model_steps([nest], **sizes)
            assert np.array_equal(array_steps([nest], **sizes), expected)
            found = chain_steps(model, stand.layout, [nest], len(expected), seed=seed, stall=0.0)
            assert np.array_equal(found, expected)
            steps += len(found)
    figure(f"{len(LONG)} nests, {steps} steps, 0 wrong")
