"""Chips whose PCUs run lane programs: what is proved live ends in RTL, with the golden bits."""

import collections

import numpy as np
import pytest

from gen.verilog import emit
from hw.chip import Chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.prove import prove
from tests.lane_jobs import broken, data_of, draw_job, draw_softmax
from tests.units_lanes import CHIP, Reconvergent

_MOST_CYCLES = 200_000
#: Latency and jitter of memory.
TIMINGS = ((1, 5), (7, 20), (100, 60))


def run(model, job, program, data, timing, seed):
    """End of a launch in RTL, and the stored results."""
    latency, jitter = timing
    layout, memory = job.memory(data, seed % 1000, program)
    ended = model.run(
        memory,
        list_address=layout.list_address,
        conditions=MemoryConditions(latency=latency, jitter=jitter, stall=0.2, seed=seed % 1000),
        max_cycles=_MOST_CYCLES,
    )
    return ended, layout.read(memory, "Z").view(np.uint32)


def emulated(job, program, data, seed):
    layout, memory = job.memory(data, seed % 1000, program)
    assert emulate(CHIP, memory, list_address=layout.list_address).status == "done"
    return layout.read(memory, "Z").view(np.uint32)


@pytest.fixture(scope="module")
def model(heavy_lock):
    with heavy_lock():
        model = ChipModel(emit(Chip(CHIP)), CHIP)
    with model:
        yield model


def check_jobs(model, rng, count):
    """Draw jobs, half of them broken, a fifth softmax; returns how many ended how, by verdict."""
    ends = collections.Counter()
    for number in range(count):
        drawn = draw_job(rng) if number % 5 else draw_softmax(rng)
        job, data, expected = drawn.job, drawn.data, drawn.expected.words
        if number % 2:
            job = broken(rng, job)
            data = data_of(rng, job.feeds, CHIP)
        program = job.program()
        answer = prove(program)
        if answer.live and number % 2:
            expected = emulated(job, program, data, number)
        for timing in TIMINGS:
            ended, got = run(model, job, program, data, timing, int(rng.integers(1000)))
            verdict = "live" if answer.live else "waits" if answer.waits else "left over"
            ends[verdict, ended.status] += 1
            assert (ended.status == "done") == (verdict != "waits"), (answer, ended, job)
            if answer.live:
                assert (got == expected).all(), job.unit
            if verdict == "waits":
                break  # a launch that hangs takes long
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_random_lane_programs_end_exactly_if_nothing_waits(model, part, seed, heavy):
    """Of 200 programs the live ones end at every timing with golden bits, the others as said."""
    ends = check_jobs(model, np.random.default_rng((seed, part)), 40)
    print(f"launches by verdict and end: {dict(ends)}")
    assert ends["live", "done"] >= 3 * 20
    assert ends["waits", "hang"] and ends["left over", "done"]


@pytest.mark.slow
def test_streams_that_meet_again_stop_beyond_the_room_that_is_counted(model, seed, heavy):
    """At the depth that is proved every timing ends; s vectors and one more hang."""
    depth = max(d for d in range(20, 60) if prove(Reconvergent.of(d, 1).program()).live)
    rng = np.random.default_rng(seed)
    job = Reconvergent.of(depth, 3)
    program, data = job.program(), data_of(rng, job.feeds, CHIP)
    for timing in TIMINGS:
        ended, got = run(model, job, program, data, timing, seed)
        assert ended.status == "done"
        assert (got == emulated(job, program, data, seed)).all()
    early = prove(program).early
    print(f"live at depth {depth}, refusals up to {early} vectors early")
    deeper = Reconvergent.of(depth + early + 1, 3)
    program, data = deeper.program(), data_of(rng, deeper.feeds, CHIP)
    assert prove(program).waits
    ended, _ = run(model, deeper, program, data, TIMINGS[0], seed)
    assert ended.status == "hang"
