"""The stream engine against the moves of its program: place and marks, step for step."""

import random
from typing import Any

from amaranth.sim import Simulator

from hw.arch.loops import LoopProgram
from hw.arch.pmu import Beyond, EngineProgram, SlotRing
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level
from hw.pmu.address_generator import StreamEngine
from tests.hw.step_model import moves_of

POSITION_BITS, SLOTS = 10, 5


def random_program(rng: random.Random) -> EngineProgram:
    def loop(level: int) -> LoopProgram:
        slope = rng.choice([0, 0, 1]) if level else 0
        shift = rng.randint(0, 2) if slope else 0
        base = rng.randint(1 << shift, (4 << shift) - 1)
        return LoopProgram(base, rng.randint(-40, 40), slope, rng.randrange(level or 1), shift)

    count = rng.randint(1, SLOTS)
    slots = LoopProgram(rng.randint(1, count))
    last = rng.choice([None, *range(ENGINE_LOOPS + 1)])
    final = None if last is None else rng.choice([None, *range(last + 1)])
    return EngineProgram(
        SlotRing(0, rng.randrange(256), rng.randrange(256), count),
        tuple(loop(Level.ADDRESS + i) for i in range(rng.randint(0, 3))),
        launches=LoopProgram(rng.randint(1, 2)),
        windows=loop(Level.WINDOWS),
        repeats=loop(Level.REPEATS),
        slots=slots,
        last_level=last,
        final_level=final,
        beyond=rng.choice([None, Beyond(rng.randrange(ENGINE_LOOPS), rng.randint(0, 3))]),
    )


def test_random_programs_step_for_step(seed: int) -> None:
    rng = random.Random(seed)
    dut = StreamEngine(position_bits=POSITION_BITS, slots=SLOTS)

    async def bench(ctx: Any) -> None:
        for _ in range(60):
            program = random_program(rng)
            iterations = rng.randint(1, 3)
            layout = dut.config.shape()
            fields = program.fields(layout)
            fields["chain"] = layout["chain"].shape.from_bits(fields["chain"])
            ctx.set(dut.config, fields)
            ctx.set(dut.i_last_iteration, iterations - 1)
            ctx.set(dut.i_start, 1)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            for number, move in enumerate(moves_of(program, iterations)):
                if number == 300:
                    break
                while rng.random() < 0.2:
                    await ctx.tick()
                assert ctx.get(dut.o_valid) and not ctx.get(dut.o_done)
                assert ctx.get(dut.o_slot) == move.slot
                assert ctx.get(dut.o_lap) == move.lap % 2
                assert ctx.get(dut.o_position) == move.position % (1 << POSITION_BITS)
                marks = (dut.o_closes, dut.o_last, dut.o_final, dut.o_beyond)
                seen = tuple(bool(ctx.get(mark)) for mark in marks)
                assert seen == (move.closes, move.last, move.final, move.beyond), program
                ctx.set(dut.i_next, 1)
                await ctx.tick()
                ctx.set(dut.i_next, 0)
            else:
                assert ctx.get(dut.o_done)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
