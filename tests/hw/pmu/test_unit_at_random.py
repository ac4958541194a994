"""The PMU cleared in mid flight, at the size of `small`, and under random programs."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, PmuProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, Access, Level, TokenSource
from hw.pmu.unit import Pmu
from tests.hw.pmu import bench
from tests.hw.pmu.bench import (
    CAPACITY_BYTES,
    SLOTS,
    WIDTH_BITS,
    check,
    engine,
    mirror,
    run,
    steps,
    two_rings,
    vectors,
)
from tests.hw.reused_simulator import Simulation
from tests.hw.step_model import moves_of


@pytest.mark.slow
def test_a_clear_in_mid_flight_leaves_nothing_behind(
    seed: int, draws: Callable[[int, int], int]
) -> None:
    rng = random.Random(seed)
    program = two_rings(windows=9, element_bytes=2)
    simulator = Simulation(Pmu, width_bits=WIDTH_BITS, capacity_bytes=CAPACITY_BYTES, slots=SLOTS)
    dut = simulator.design
    ends = [rng.randint(30, 250) for _ in range(draws(5, 12))] + [1500]

    async def everything(ctx: Any) -> None:
        sizes = {"capacity_bytes": CAPACITY_BYTES, "slots": SLOTS}
        ctx.set(dut.config.as_value(), program.pack(width_bits=WIDTH_BITS, **sizes))
        for end in ends:
            inputs = (vectors(144, rng), vectors(144, rng))
            expected = mirror(program, inputs)
            given, taken, tokens = [0, 0], [0, 0], [0, 0]
            ctx.set(dut.i_run, 0)
            for port in dut.i_stream:
                ctx.set(port.valid, 0)
            ctx.set(dut.i_clear, 1)
            await ctx.tick()
            ctx.set(dut.i_clear, 0)
            ctx.set(dut.i_run, 1)
            for _ in range(end):
                for i in (0, 1):
                    ctx.set(dut.i_stream[i].valid, given[i] < 144)
                    if given[i] < 144:
                        word = int.from_bytes(inputs[i][given[i]][0], "little")
                        ctx.set(dut.i_stream[i].payload.data, word)
                    ctx.set(dut.o_stream[i].ready, rng.random() < 0.7)
                    ctx.set(dut.o_token[i].ready, rng.random() < 0.4)
                for i in (0, 1):
                    given[i] += ctx.get(dut.i_stream[i].valid & dut.i_stream[i].ready)
                    tokens[i] += ctx.get(dut.o_token[i].valid & dut.o_token[i].ready)
                    if ctx.get(dut.o_stream[i].valid & dut.o_stream[i].ready):
                        payload = ctx.get(dut.o_stream[i].payload)
                        data = payload.data.to_bytes(WIDTH_BITS // 8, "little")
                        seen = (data, bool(payload.last), bool(payload.final))
                        assert seen == expected[i][taken[i]]
                        taken[i] += 1
                await ctx.tick()
        assert taken == [144, 144] and tokens == [9, 9] and ctx.get(dut.o_done) == 15

    simulator.add_testbench(everything)
    simulator.run()


@pytest.mark.slow
def test_the_pmu_of_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    for name, value in (("WIDTH_BITS", 256), ("CAPACITY_BYTES", 1 << 16), ("SLOTS", 16)):
        monkeypatch.setattr(bench, name, value)
    # Weights: slabs of 64 by 16 in rows, out in columns, packets of a tile of 16 columns.
    walk = {"windows": 3, "count": 3, "base": 4096}
    program = PmuProgram(
        (engine(64, 16, 2, Access.ROW, **walk), None),
        (engine(64, 16, 2, Access.COLUMN, last_level=Level.ADDRESS, **walk), None),
    )
    inputs = (vectors(192, rng), [])
    check(program, run(program, inputs, rng=rng, stall=0.1), inputs)


def random_pair(rng: random.Random, buffer: int) -> tuple[EngineProgram, EngineProgram]:
    """Writer and reader of one buffer in its half of the memory: shape, pieces, ring, re-reads."""
    element_bytes = rng.choice([1, 2, 4])
    lanes = WIDTH_BITS // 8 // element_bytes
    accesses = [a for a in Access if a is Access.COLUMN or 1 << int(a.value) <= lanes]
    rows, columns = (lanes * rng.randint(1, 2 if lanes < 8 else 1) for _ in range(2))
    most = CAPACITY_BYTES // 2 // (rows * columns * element_bytes)
    count = rng.randint(1, min(SLOTS, most))
    windows, together = rng.randint(1, 4), rng.randint(1, count)
    place = {"count": count, "buffer": buffer, "base": buffer * 512 // element_bytes}
    last = rng.choice([None, *range(ENGINE_LOOPS + 1)])
    writer = engine(
        rows, columns, element_bytes, rng.choice(accesses), windows=windows * together, **place
    )
    reader = engine(
        rows,
        columns,
        element_bytes,
        rng.choice(accesses),
        windows=windows,
        slots=LoopProgram(together),
        repeats=LoopProgram(rng.randint(1, 3)),
        last_level=last,
        final_level=None if last is None else rng.randint(0, last),
        **place,
    )
    return writer, reader


@pytest.mark.few(2)
@pytest.mark.parametrize("case", range(5))
def test_random_programs_equal_the_mirror(case: int, seed: int) -> None:
    rng = random.Random(seed)
    (w0, r0), (w1, r1) = random_pair(rng, 0), random_pair(rng, 1)
    tokens = (rng.choice(list(TokenSource)), rng.choice(list(TokenSource)))
    program = PmuProgram((w0, w1), rng.choice([(r0, r1), (r1, r0)]), tokens)
    inputs = (vectors(steps(w0), rng), vectors(steps(w1), rng))
    stall = rng.choice([0.0, 0.2, 0.6])
    outcome = run(program, inputs, rng=rng, stall=stall, token_stall=stall)
    check(program, outcome, inputs)
    for source, seen in zip(tokens, outcome.tokens):
        engine_of = None if source is TokenSource.OFF else program.engines[source.value - 1]
        assert seen == (sum(move.closes for move in moves_of(engine_of)) if engine_of else 0)
