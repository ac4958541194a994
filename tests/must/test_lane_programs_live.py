"""unit-j: random lane, phase and softmax programs end in RTL exactly if they are proved live."""

import collections

import numpy as np
import pytest

from gen.verilog import emit
from hw.chip import Chip
from sim.emulator import emulate
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.fabric.nets import find_nets
from sw.prove import prove
from sw.prove.stream_packets import StreamPackets
from tests.hw.pcu.attention_jobs import draw_attention
from tests.lane_jobs import broken, data_of, draw_job, draw_softmax
from tests.units_lanes import CHIP, Reconvergent

_MOST_CYCLES = 200_000
#: Latency and jitter of memory.
TIMINGS = ((1, 5), (7, 20), (100, 60))
#: Programs of one PCU, softmax in four phases, and a scores unit with a values unit.
DRAWS = (draw_softmax, draw_attention, draw_job, draw_job, draw_job)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


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


def verdict_of(job, program, answer):
    """What the proof says, and names if it refuses.

    A part of fused softmax misreads packets that it cannot take: nothing is said of its RTL.
    """
    if answer.live:
        return "live"
    assert answer.waits or answer.faults
    if job.unit.softmax and StreamPackets(program, find_nets(program)).faults:
        assert answer.faults
        return "misread"
    return "waits" if answer.waits else "left over"


def check_jobs(model, rng, count):
    """Draw jobs, half of them broken; returns how many ended how, by verdict."""
    ends = collections.Counter()
    for number in range(count):
        drawn = DRAWS[number % len(DRAWS)](rng)
        job, data, expected = drawn.job, drawn.data, drawn.expected.words
        if number % 2:
            job = broken(rng, job)
            data = data_of(rng, job.feeds, CHIP)
        program = job.program()
        answer = prove(program)
        assert answer.live or number % 2, (answer, job)
        verdict = verdict_of(job, program, answer)
        if verdict == "misread":
            ends[verdict, "not run"] += 1
            continue
        if answer.live and number % 2:
            expected = emulated(job, program, data, number)
        for timing in TIMINGS:
            ended, got = run(model, job, program, data, timing, int(rng.integers(1000)))
            ends[verdict, ended.status] += 1
            assert (ended.status == "done") == (verdict != "waits"), (answer, ended, job)
            if answer.live:
                assert (got == expected).all(), job.unit
            if verdict == "waits":
                break  # a launch that hangs takes long
    return ends


@pytest.mark.must("unit-j", goal="200 random programs: live <=> ends in RTL at latencies 1, 7, 100")
@pytest.mark.parametrize("part", range(5))
def test_random_programs_end_exactly_if_nothing_waits(model, part, seed, heavy, figure):
    """The live ones end at every timing with golden bits, the others as the proof says."""
    ends = check_jobs(model, np.random.default_rng((seed, part)), 40)
    figure(f"40 programs: {', '.join(f'{n} {v} {e}' for (v, e), n in sorted(ends.items()))}")
    assert ends["live", "done"] >= 3 * 20
    assert ends["waits", "hang"] and ends["left over", "done"]


@pytest.mark.must("unit-j", goal="depth d lives; d + s + 1 is refused, and hangs in RTL")
def test_streams_that_meet_again_stop_beyond_the_room_that_is_counted(model, seed, heavy, figure):
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
    deeper = Reconvergent.of(depth + early + 1, 3)
    program, data = deeper.program(), data_of(rng, deeper.feeds, CHIP)
    answer = prove(program)
    assert answer.waits and answer.early == early
    for timing in TIMINGS:
        ended, _ = run(model, deeper, program, data, timing, seed)
        assert ended.status == "hang"
    figure(f"live at depth d = {depth}, s = {early} vectors, a hang at d + s + 1")
