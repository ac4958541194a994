"""Liveness of PCUs with lane programs: random ones, broken ones, streams that meet again."""

import dataclasses
import time

import numpy as np
import pytest

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.lane_room import AUXILIARY_ROOM
from hw.arch.lanes.phase_word import (
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
)
from hw.arch.pcu import PcuInput, PcuOutput, PcuProgram
from hw.arch.unit_kind import PCU
from sw.fabric.nets import Input, Output, find_nets
from sw.prove import LivenessError, phase_runs, prove, require_live
from sw.prove.packets import Packets
from sw.prove.read_first import _of_phases
from sw.prove.stream_packets import StreamPackets
from tests.hw.pcu.softmax_program import SOFTMAX
from tests.lane_jobs import broken, draw_job
from tests.sw.naive import ends
from tests.units_lanes import Feed, LaneJob, Reconvergent

ACTIVATION, STATISTICS = PhaseSource.ACTIVATION, PhaseSource.STATISTICS
#: Doubles what it takes: a phase that gives as much as it takes.
MAP = LanePhase(ACTIVATION, fma=(Operand.X, Operand.ONE, Operand.X), result=ResultForm.WORD)
#: Vectors beside it, one for each packet.
HELD = dataclasses.replace(MAP, auxiliary=AuxiliaryUse.HELD, y=Fetched.AUXILIARY)

#: A joined phase that latches such a vector, and one that takes the stream behind it.
LATCHES = dataclasses.replace(
    HELD, auxiliary=AuxiliaryUse.LATCHED, reduction=Reduction.KEEP, result=ResultForm.NONE
)
BEHIND = LanePhase(
    ACTIVATION,
    auxiliary=AuxiliaryUse.VECTOR,
    y=Fetched.KEPT,
    z=Fetched.AUXILIARY,
    fma=(Operand.Y, Operand.ONE, Operand.Z),
    argument=Operand.Y,
    result=ResultForm.WORD,
)
HELD_BEHIND = dataclasses.replace(BEHIND, auxiliary=AuxiliaryUse.HELD)
#: Makes a vector of words, or of bf16, a statistic before each packet, and adds it to its elements.
KEEPS = LanePhase(
    STATISTICS,
    auxiliary=AuxiliaryUse.VECTOR,
    y=Fetched.AUXILIARY,
    fma=(Operand.Y, Operand.ONE, Operand.MINUS_ZERO),
    argument=Operand.Y,
    reduction=Reduction.REPLACE,
)
ADDS = LanePhase(
    ACTIVATION,
    y=Fetched.STATISTIC_0,
    fma=(Operand.X, Operand.ONE, Operand.Y),
    result=ResultForm.WORD,
)


def job_of(phases, results, *feeds, **fields):
    """A job whose first stream is of activations, the second one auxiliary."""
    ports = (PcuInput.ACTIVATION, PcuInput.AUXILIARY)
    unit = PcuProgram(lanes=LaneProgram(phases), **fields)
    return LaneJob(unit, dict(zip(ports, feeds, strict=False)), results)


def compared(program, **kinds):
    """The answer, which is the same with every repeat run."""
    short, whole = prove(program, **kinds), prove(program, whole=True, **kinds)
    assert dataclasses.replace(short, steps=0) == dataclasses.replace(whole, steps=0)
    return short


def test_random_programs_are_live_and_the_oracle_agrees(seed):
    rng = np.random.default_rng(seed)
    for number in range(15):
        program = draw_job(rng).job.program()
        assert compared(program).live
        assert ends(program, seed + number)


def test_streams_that_do_not_fit_are_refused_exactly_if_the_oracle_stops(seed):
    """A single PCU: no stream forks, so the proof counts every buffer."""
    rng = np.random.default_rng(seed)
    verdicts = []
    for number in range(40):
        program = broken(rng, draw_job(rng, rounds=3).job).program()
        answer = compared(program)
        assert answer.live == ends(program, seed + number), answer
        assert answer.early == 0
        verdicts.append(answer.live)
    assert not all(verdicts)


REFUSED = [
    (
        "packets that no phase takes to the end of the program",
        job_of((MAP, MAP), 12, Feed(3, 1, 4)),
        "lanes ends before phase 1, not after the last one",
    ),
    (
        "a packet that no mark ends",
        job_of((MAP,), 8, Feed(2, 1, 4, last=False)),
        "lanes waits for a vector from PMU (0, 0) R0; PMU (0, 0) R0 has ended",
    ),
    (
        "a packet without the vector that it is to be held beside",
        job_of((HELD,), 12, Feed(3, 1, 4), Feed(2, 1, 1)),
        "lanes waits for a vector from PMU (0, 2) R0; PMU (0, 2) R0 has ended",
    ),
    (
        "a vector to hold too many",
        job_of((HELD,), 12, Feed(3, 1, 4), Feed(4, 1, 1)),
        "lanes holds 1 vectors that no phase takes",
    ),
    (
        "packets without the vector that is to be latched",
        job_of((LATCHES, BEHIND), 12, Feed(3, 1, 4), Feed(3, 1, 4)),
        "lanes waits for a vector from PMU (0, 2) R0; PMU (0, 2) R0 has ended",
    ),
    (
        "a packet whose latched vector is there, and not the one behind it",
        job_of((LATCHES, HELD_BEHIND), 12, Feed(3, 1, 4), Feed(5, 1, 1)),
        "lanes waits for a vector from PMU (0, 2) R0; PMU (0, 2) R0 has ended",
    ),
    (
        "a vector too many behind a latched one",
        job_of((LATCHES, HELD_BEHIND), 12, Feed(3, 1, 4), Feed(7, 1, 1)),
        "lanes holds 1 vectors that no phase takes",
    ),
    (
        "a packet without the vectors that come before it",
        job_of((KEEPS, ADDS), 12, Feed(3, 1, 4), Feed(2, 1, 2)),
        "lanes waits for a vector from PMU (0, 2) R0; PMU (0, 2) R0 has ended",
    ),
    (
        "a packet before which half of the vectors come",
        job_of((KEEPS, ADDS), 12, Feed(3, 1, 4), Feed(5, 1, 1)),
        "lanes waits for a vector from PMU (0, 2) R0; PMU (0, 2) R0 has ended",
    ),
    (
        "vectors before a packet that does not come",
        job_of((KEEPS, ADDS), 12, Feed(3, 1, 4), Feed(4, 1, 2)),
        "lanes ends before phase 1, not after the last one",
    ),
    (
        "more results than are stored",
        job_of((MAP,), 8, Feed(3, 1, 4)),
        "left over in front of PMU",
    ),
]


@pytest.mark.parametrize(
    ("job", "words"), [each[1:] for each in REFUSED], ids=[e[0] for e in REFUSED]
)
def test_what_stops_or_is_left_over_is_named(job, words):
    with pytest.raises(LivenessError) as caught:
        require_live(job.program())
    assert words in caught.value.message


@pytest.mark.parametrize("form", [ElementForm.WORD, ElementForm.BF16], ids=str)
def test_vectors_that_become_statistics_come_before_each_packet(form):
    """Without packets of both streams the first phase waits: it has begun nothing."""
    keeps = dataclasses.replace(KEEPS, auxiliary_form=form)
    vectors = 2 // form.per_word
    for missing in (0, 1):
        program = job_of(
            (keeps, keeps, ADDS), 12, Feed(3, 1, 4), Feed(2 * (3 - missing), 1, vectors)
        ).program()
        answer = compared(program)
        assert answer.live == ends(program, 1) == (not missing), answer
    live = job_of((keeps, ADDS), 12, Feed(3, 1, 4), Feed(3, 1, vectors)).program()
    assert prove(live, repeat=4).live


@pytest.mark.few(4)
@pytest.mark.parametrize("vectors", [1, 63, 64, 65, 150])
@pytest.mark.parametrize("behind", [BEHIND, HELD_BEHIND], ids=["vector", "held"])
def test_a_latched_vector_leaves_the_stream_behind_a_strip(behind, vectors):
    """Packets of a strip of 64 vectors and of others, and streams without those of one."""
    beside = 1 + (vectors if behind is BEHIND else 1)
    phases = (LATCHES, behind)
    for missing in (0, 1):
        other = Feed(3 - missing, 1, beside)
        program = job_of(phases, 3 * vectors, Feed(3, 1, vectors), other).program()
        answer = prove(program)
        assert answer.live == ends(program, 1) == (not missing), answer
        assert prove(program, whole=True).live == answer.live


@pytest.mark.parametrize("latches", [False, True])
def test_results_of_a_strip_are_sent_before_the_vectors_behind_them_come(latches):
    """Of two strips: those of the source that a result depends on, and of the auxiliary stream."""
    keeps = (
        LATCHES
        if latches
        else dataclasses.replace(MAP, reduction=Reduction.KEEP, result=ResultForm.NONE)
    )
    feeds = Feed(1, 1, 100), Feed(1, 1, 100 + latches)
    program = job_of((keeps, BEHIND), 100, *feeds).program()
    packets = StreamPackets(program, find_nets(program))
    ((at, unit),) = ((at, each) for kind, at, each in program.units() if kind is PCU)
    counts = np.array([0, 1, 40, 64, 65, 100])
    found = dict(_of_phases(packets, Output(PCU, at, PcuOutput.RESULT), unit, counts))
    ports = PcuInput.ACTIVATION, PcuInput.AUXILIARY
    needed = [found[Input(PCU, at, port)].tolist() for port in ports]
    assert needed == [
        [0, 64, 64, 64, 100, 100],
        [count + latches * (count > 0) for count in counts.tolist()],
    ]


def test_streams_that_meet_again_live_up_to_the_room_that_is_counted():
    """All of a packet waits for its sum: in the FIFO, and one vector at the fork."""
    depth = AUXILIARY_ROOM + 1
    for vectors, live in ((depth, True), (depth + 1, False)):
        program = Reconvergent.of(vectors, 3).program()
        answer = compared(program)
        assert (answer.live, ends(program, 1)) == (live, live), answer
    # The oracle has all buffers of the chip, some of which the proof leaves out at a fork.
    assert not ends(Reconvergent.of(depth + answer.early + 1, 3).program(), 1)
    names = {wait.split(" waits for ")[0] for wait in answer.waits}
    assert {"PCU (0, 1) lanes", "PCU (1, 1) lanes"} <= names
    with pytest.raises(LivenessError, match=f"{answer.early} vectors of room before forks are not"):
        require_live(program)


def softmax(slots):
    """Softmax of so many slots of eight vectors, each of which is read three times."""
    return job_of(SOFTMAX.phases, 8 * slots, Feed(slots, 1, 8, repeats=3)).program()


def test_rounds_of_phases_are_left_out():
    """Softmax of many rows: steps of a few of them."""
    few, many = prove(softmax(40)), prove(softmax(4000))
    assert few.live and many.live
    assert many.steps <= few.steps + 20
    assert many.moved > 90 * few.moved


def test_iterations_end_as_they_began():
    begin = time.process_time()
    assert prove(softmax(4), repeat=10**6).live
    assert time.process_time() - begin < 2
    first = LanePhase(
        STATISTICS,
        y=Fetched.POSITION,
        argument=Operand.Y,
        fma=(Operand.Y,) * 3,
        result=ResultForm.WORD,
    )
    ahead = job_of((first, MAP), 3 * 2 + 2 * 4, Feed(2, 1, 4)).program()
    assert prove(ahead).live
    assert "runs phase 0 for the next iteration already" in prove(ahead, repeat=2).faults[0]


def test_statistics_that_are_sent_may_outlive_an_iteration():
    phases = (
        LanePhase(ACTIVATION, reduction=Reduction.SUM),
        LanePhase(
            STATISTICS,
            y=Fetched.STATISTIC_0,
            fma=(Operand.Y, Operand.ONE, Operand.ONE),
            order=UnitOrder.SFU_ALU_FMA,
            argument=Operand.Y,
            reduction=Reduction.REPLACE,
            result=ResultForm.WORD,
        ),
    )
    program = job_of(phases, 4, Feed(2, 1, 4)).program()
    assert prove(program).live
    assert prove(program, repeat=2).live


def drawn_packets(rng):
    """Packets of a stream, most of them alike, with vectors behind the last mark or without."""
    count = int(rng.integers(0, 12))
    lengths = np.resize(rng.integers(rng.integers(0, 2), 5, size=3), count)
    return Packets(lengths, rng.integers(0, 2, size=count) > 0, int(rng.choice([0, 0, 2])))


def test_runs_of_whole_rounds_are_those_of_one_run_after_the_other(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    cases, rounds = [], []
    for _ in range(30):
        program = draw_job(rng).job.unit.lanes
        sources = {phase.source for phase in program.phases} - {STATISTICS}
        for _ in range(10):
            streams = {each: drawn_packets(rng) for each in {*sources, PhaseSource.AUXILIARY}}
            cases.append((program, 4, streams))
    whole_rounds = phase_runs._whole_rounds

    def noted(*case):
        rounds.append(whole_rounds(*case))
        return rounds[-1]

    found = []
    for number in (noted, lambda *_: np.zeros((0, 7), np.int64)):
        phase_runs._enumerated.cache_clear()
        monkeypatch.setattr(phase_runs, "_whole_rounds", number)
        found.append([phase_runs.phase_runs(*case) for case in cases])
    for together, single in zip(*found, strict=True):
        for field in dataclasses.fields(single):
            values = getattr(single, field.name), getattr(together, field.name)
            assert np.array_equal(*values), field.name
    assert sum(len(each) > 0 for each in rounds) > len(rounds) // 5
