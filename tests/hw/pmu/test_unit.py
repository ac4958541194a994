"""Programs on the PMU: transposes, rings of slots, re-reads, marks, tokens, rates."""

import dataclasses
import random

import pytest
from amaranth.hdl import Const

from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, PmuProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level, TokenSource
from hw.pmu.address_generator import StreamEngine
from hw.pmu.unit import Pmu
from tests.hw.pmu.bench import (
    check,
    engine,
    lanes_of,
    run,
    steps,
    two_rings,
    vectors,
)
from tests.slow_cases import quick_first


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_rows_in_columns_out_is_a_transpose(element_bytes: int, seed: int) -> None:
    rng = random.Random(seed)
    rows = columns = 8
    writer = engine(rows, columns, element_bytes, Access.ROW, windows=1)
    reader = engine(rows, columns, element_bytes, Access.COLUMN, windows=1)
    inputs = (vectors(steps(writer), rng), [])
    program = PmuProgram((writer, None), (reader, None))
    outcome = run(program, inputs)
    check(program, outcome, inputs)
    # Independent of the mirror: the streams are the matrix row by row and column by column.
    given = b"".join(v[0] for v in inputs[0])
    taken = b"".join(v[0] for v in outcome.outputs[0])
    size = element_bytes
    for r in range(rows):
        for c in range(columns):
            there, here = (r * columns + c) * size, (c * rows + r) * size
            assert taken[here : here + size] == given[there : there + size]


@pytest.mark.parametrize(
    ("element_bytes", "access"), [(1, Access.TWO_ROWS), (2, Access.TWO_ROWS), (1, Access.FOUR_ROWS)]
)
def test_packed_rows_in_rows_out(element_bytes: int, access: Access, seed: int) -> None:
    rng = random.Random(seed)
    writer = engine(8, 16, element_bytes, access, windows=2)
    reader = engine(8, 16, element_bytes, Access.ROW, windows=2)
    inputs = (vectors(steps(writer), rng), [])
    program = PmuProgram((writer, None), (reader, None))
    check(program, run(program, inputs), inputs)


def ring_story(stall: float, seed: int, *, make: type[Pmu] = Pmu) -> None:
    rng = random.Random(seed)
    program = two_rings(windows=11, element_bytes=2)
    count = steps(program.writers[0])
    inputs = (vectors(count, rng), vectors(count, rng))
    outcome = run(program, inputs, rng=rng, stall=stall, token_stall=stall, make=make, limit=3000)
    check(program, outcome, inputs)
    assert outcome.tokens == [11, 11]


@pytest.mark.parametrize("stall", quick_first([0.3, 0.0, 0.8]))
def test_rings_wrap_with_stalls_on_all_ports(stall: float, seed: int) -> None:
    ring_story(stall, seed)


class EmptyParityWrong(Pmu):
    def _empty_parity(self, lap):
        return lap


class FirstLapNotFree(Pmu):
    def _empty_parity(self, lap):
        return Const(0, 1)


class FullParityWrong(Pmu):
    def _full_parity(self, lap):
        return ~lap


@pytest.mark.slow
@pytest.mark.parametrize("make", [FullParityWrong, EmptyParityWrong, FirstLapNotFree])
def test_the_rings_catch_a_wrong_parity(make: type[Pmu], seed: int) -> None:
    with pytest.raises(AssertionError):
        ring_story(0.3, seed, make=make)


def depth_story(count: int, seed: int) -> None:
    writer = engine(8, 8, 1, Access.ROW, windows=9, count=count)
    inputs = (vectors(72, random.Random(seed)), [])
    outcome = run(PmuProgram((writer, None)), inputs, limit=100)
    # 8 vectors a slot, and two in the input buffer.
    assert len(outcome.given_at[0]) == 8 * count + 2


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_writer_fills_every_slot_and_not_one_more(count: int, seed: int) -> None:
    depth_story(count, seed)


@pytest.mark.parametrize(("count", "off"), quick_first([(2, 2), (2, 0), (4, 2), (4, 0)], 2))
def test_the_depth_catches_a_slot_wrap_off_by_one(
    count: int, off: int, seed: int, planted: pytest.MonkeyPatch
) -> None:
    planted.setattr(
        StreamEngine, "_is_last_slot", lambda self, slot: slot + off == self.config.slot_count
    )
    with pytest.raises(AssertionError):
        depth_story(count, seed)


def test_windows_are_read_again_before_their_slots_are_freed(seed: int) -> None:
    rng = random.Random(seed)
    writer = engine(4, 8, 2, Access.ROW, windows=6, count=4)
    # Windows of two slots, read once, twice, three times.
    reader = engine(
        4,
        8,
        2,
        Access.ROW,
        windows=3,
        count=4,
        repeats=LoopProgram(1, slope=1, outer=Level.WINDOWS),
        slots=LoopProgram(2),
        last_level=Level.SLOTS,
        final_level=Level.REPEATS,
    )
    program = PmuProgram((writer, None), (reader, None), (TokenSource.R0, TokenSource.R0))
    inputs = (vectors(steps(writer), rng), [])
    outcome = run(program, inputs, rng=rng, stall=0.4, token_stall=0.5)
    check(program, outcome, inputs)
    assert outcome.tokens == [6, 6]
    assert sum(v[1] for v in outcome.outputs[0]) == 1 + 2 + 3
    assert sum(v[2] for v in outcome.outputs[0]) == 3


def test_two_writers_fill_and_two_readers_free_one_slot(seed: int) -> None:
    rng = random.Random(seed)
    loops = (LoopProgram(4, stride=4),)
    ring = [SlotRing(0, base, 32, 3) for base in (0, 16)]
    halves = [EngineProgram(r, loops, windows=LoopProgram(7)) for r in ring]
    whole = [
        engine(4, 8, 2, Access.ROW, count=3, windows=7),
        engine(4, 8, 2, Access.COLUMN, count=3, windows=7),
    ]
    program = PmuProgram(
        (halves[0], halves[1]), (whole[0], whole[1]), (TokenSource.W0, TokenSource.R1)
    )
    inputs = (vectors(28, rng), vectors(28, rng))
    outcome = run(program, inputs, rng=rng, stall=0.5, token_stall=0.2)
    check(program, outcome, inputs)
    assert outcome.tokens == [7, 7]


def test_triangular_reads_and_their_marks(seed: int) -> None:
    rng = random.Random(seed)
    writer = engine(8, 8, 1, Access.ROW, windows=5)
    # Row r of the square is read r + 1 times: a causal schedule in small.
    loops = (LoopProgram(8, stride=8), LoopProgram(1, slope=1, outer=Level.ADDRESS))
    reader = EngineProgram(
        writer.ring,
        loops,
        element_bytes=1,
        windows=LoopProgram(5),
        last_level=Level.ADDRESS + 1,
        final_level=Level.ADDRESS,
    )
    program = PmuProgram((writer, None), (reader, None))
    inputs = (vectors(steps(writer), rng), [])
    outcome = run(program, inputs, rng=rng, stall=0.2)
    check(program, outcome, inputs)
    assert len(outcome.outputs[0]) == 5 * 36
    assert [i for i, v in enumerate(outcome.outputs[0][:36]) if v[1]] == [
        r * (r + 3) // 2 for r in range(8)
    ]


@pytest.mark.parametrize(("element_bytes", "constant"), [(1, 0x80), (2, 0x3F80), (4, 0x3F800000)])
def test_beyond_the_box_comes_a_constant(element_bytes: int, constant: int, seed: int) -> None:
    rng = random.Random(seed)
    writer = engine(8, 8, element_bytes, Access.ROW, windows=3)
    lanes = lanes_of(writer)
    # Columns 0 to 7, then a ninth: the row of ones below V transposed.
    reader = EngineProgram(
        writer.ring,
        (
            LoopProgram(8 // lanes, stride=lanes * 8),
            LoopProgram(2 if lanes == 8 else 1),
            LoopProgram(lanes + 1, stride=1),
        ),
        element_bytes=element_bytes,
        access=Access.COLUMN,
        windows=LoopProgram(3),
        beyond=Beyond(Level.ADDRESS + 2, lanes, constant),
    )
    program = PmuProgram((writer, None), (reader, None))
    inputs = (vectors(steps(writer), rng), [])
    outcome = run(program, inputs, rng=rng, stall=0.2)
    check(program, outcome, inputs)
    ones = constant.to_bytes(element_bytes, "little") * lanes
    assert [v[0] for v in outcome.outputs[0]][lanes :: lanes + 1] == [ones] * (
        len(outcome.outputs[0]) // (lanes + 1)
    )


def test_each_port_moves_a_vector_every_cycle(seed: int) -> None:
    rng = random.Random(seed)
    program = PmuProgram(
        (engine(8, 8, 1, Access.ROW, windows=40, count=4), None),
        (engine(8, 8, 1, Access.COLUMN, windows=40, count=4), None),
    )
    inputs = (vectors(320, rng), [])
    outcome = run(program, inputs)
    check(program, outcome, inputs)
    for times in (outcome.given_at[0], outcome.taken_at[0]):
        assert times == list(range(times[0], times[0] + 320))
    # The figure of docs/pmu.md, from the last vector of slot 0 in to its first out.
    assert outcome.taken_at[0][0] - outcome.given_at[0][7] == 7


def test_engines_share_a_port_in_turn_and_fill_it(seed: int) -> None:
    rng = random.Random(seed)
    program = dataclasses.replace(
        two_rings(windows=30, element_bytes=1), tokens=(TokenSource.OFF, TokenSource.OFF)
    )
    inputs = (vectors(240, rng), vectors(240, rng))
    outcome = run(program, inputs)
    check(program, outcome, inputs)
    assert outcome.counters["busy"] <= 480 + 20
    # Neither engine runs ahead while both could go.
    for one, two in (outcome.given_at, outcome.taken_at):
        assert max(abs(a - b) for a, b in zip(one, two)) <= 2
    for times in outcome.taken_at:
        assert times[-1] - times[0] <= 2 * 240 + 4


def test_a_reread_runs_at_full_rate(seed: int) -> None:
    rng = random.Random(seed)
    writer = engine(8, 8, 1, Access.ROW, windows=2)
    reader = engine(8, 8, 1, Access.COLUMN, repeats=LoopProgram(20), slots=LoopProgram(2))
    program = PmuProgram((writer, None), (reader, None))
    inputs = (vectors(16, rng), [])
    outcome = run(program, inputs)
    check(program, outcome, inputs)
    times = outcome.taken_at[0]
    assert len(times) == 320 and times[-1] - times[0] == 319


def test_a_token_not_taken_holds_its_engine_and_nothing_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    program = PmuProgram(
        (engine(8, 8, 1, Access.ROW, windows=9), None),
        (engine(8, 8, 1, Access.COLUMN, windows=9), None),
        (TokenSource.R0, TokenSource.OFF),
    )
    inputs = (vectors(72, rng), [])
    held = run(program, inputs, tokens_until=lambda _: False, limit=300)
    # Two tokens wait in the output; the third slot lacks its last vector.
    assert len(held.outputs[0]) == 3 * 8 - 1 and not held.done and held.tokens == [0, 0]
    assert held.counters["wait_room"] > 200
    late = run(program, inputs, tokens_until=lambda o: o.cycles > 200)
    check(program, late, inputs)
    assert late.tokens == [9, 0]


def test_packets_are_spread_over_writers(seed: int) -> None:
    rng = random.Random(seed)
    halves = [
        engine(4, 4, 2, Access.ROW, windows=5, buffer=b, base=64 * b, modulus=2, index=b)
        for b in (0, 1)
    ]
    readers = [engine(4, 4, 2, Access.COLUMN, windows=5, buffer=b, base=64 * b) for b in (0, 1)]
    program = PmuProgram((halves[0], halves[1]), (readers[0], readers[1]))
    stream = vectors(40, rng)
    outcome = run(program, (stream, stream), rng=rng, stall=0.3)
    check(program, outcome, (stream, stream))


def test_state_names_what_each_engine_waits_for(seed: int) -> None:
    rng = random.Random(seed)
    writer = engine(8, 8, 1, Access.ROW, windows=7)
    reader = engine(8, 8, 1, Access.COLUMN, windows=7)
    starved = run(PmuProgram((writer, None), (reader, None)), (vectors(20, rng), []), limit=200)
    ready = {"enabled": 1, "done": 0, "entered": 1, "port": 1, "reported": 1}
    # Two slots full and read, half of the third written: both engines are in slot 0, lap 1.
    assert starved.engines["w0"] == ready | {"slot": 0, "lap": 1, "port": 0}
    assert starved.engines["r0"] == ready | {"slot": 0, "lap": 1, "entered": 0}
    assert starved.engines["w1"]["enabled"] == 0 and starved.engines["w1"]["done"] == 1
    unread = run(PmuProgram((writer, None)), (vectors(32, rng), []), limit=200)
    assert unread.engines["w0"] == ready | {"slot": 0, "lap": 1, "entered": 0}


def test_counters_name_what_a_cycle_waits_for(seed: int) -> None:
    rng = random.Random(seed)
    program = PmuProgram((engine(8, 8, 1, Access.ROW, windows=4), None))
    starved = run(program, ([], []), limit=100)
    assert starved.counters == {"busy": 0, "wait_input": 100, "wait_room": 0, "idle": 0}
    unread = run(program, (vectors(32, rng), []), limit=100)
    assert unread.counters["busy"] == 16 and unread.counters["wait_room"] > 70
    nothing = run(PmuProgram(), ([], []))
    assert nothing.counters == {"busy": 0, "wait_input": 0, "wait_room": 0, "idle": 20}
