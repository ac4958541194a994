"""The counter chain against the loop nest it stands for."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.arch.loops import ChainProgram, LoopProgram, chain_layout
from hw.lib.loop_nest import CounterChain
from tests.hw.step_model import Step, cycles_of, steps_of

LOOPS, COUNT_BITS, OFFSET_BITS = 4, 6, 10


def run(dut: CounterChain, programs: list[ChainProgram], ready: Callable[[], bool]) -> list[Any]:
    """Steps of each program and the cycles they took."""
    results: list[tuple[list[Step], int]] = []

    def bits(value: int) -> tuple[bool, ...]:
        return tuple(bool(value >> i & 1) for i in range(LOOPS))

    async def bench(ctx: Any) -> None:
        assert ctx.get(dut.o_done) == 1
        for program in programs:
            ctx.set(dut.config.as_value(), program.pack(dut.config.shape()))
            ctx.set(dut.i_start, 1)
            await ctx.tick()
            ctx.set(dut.i_start, 0)
            steps, cycles = [], 0
            while not ctx.get(dut.o_done):
                take = ready()
                ctx.set(dut.i_next, take)
                if take and ctx.get(dut.o_valid):
                    indices = tuple(ctx.get(dut.o_indices[i]) for i in range(LOOPS))
                    marks = (bits(ctx.get(m)) for m in (dut.o_first, dut.o_end, dut.o_last))
                    steps.append(Step(indices, ctx.get(dut.o_offset), *marks))
                await ctx.tick()
                cycles += 1
            ctx.set(dut.i_next, 0)
            results.append((steps, cycles))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return results


def expected(program: ChainProgram) -> list[Step]:
    padded = ChainProgram(program.loops + (LoopProgram(),) * (LOOPS - len(program.loops)))
    wrapped = 1 << OFFSET_BITS
    return [Step(s.indices, s.offset % wrapped, s.first, s.end, s.last) for s in steps_of(padded)]


CASES = {
    "one step": ((LoopProgram(1),), [0]),
    "rows": ((LoopProgram(2, stride=10), LoopProgram(3, stride=1)), [0, 1, 2, 10, 11, 12]),
    "backwards": ((LoopProgram(3, stride=-2),), [0, 1022, 1020]),
    "growing triangle": (
        (LoopProgram(3, stride=8), LoopProgram(1, stride=1, slope=1)),
        [0, 8, 9, 16, 17, 18],
    ),
    "shrinking triangle": (
        (LoopProgram(3, stride=8), LoopProgram(3, stride=1, slope=-1)),
        [0, 1, 2, 8, 9, 16],
    ),
    "strict triangle, first row empty": (
        (LoopProgram(3, stride=8), LoopProgram(0, stride=1, slope=1)),
        [8, 16, 17],
    ),
    "strict triangle, last row empty": (
        (LoopProgram(3, stride=8), LoopProgram(2, stride=1, slope=-1)),
        [0, 1, 8],
    ),
    "negative counts are none": ((LoopProgram(4, stride=1), LoopProgram(-2, slope=1)), [3]),
    "no iteration at all": ((LoopProgram(0), LoopProgram(3)), []),
    "triangle over the second loop": (
        (
            LoopProgram(2, stride=100),
            LoopProgram(2, stride=10),
            LoopProgram(1, 1, slope=1, outer=1),
        ),
        [0, 10, 11, 100, 110, 111],
    ),
}


def test_named_nests_visit_the_offsets_written_out() -> None:
    programs = [ChainProgram(loops) for loops, _ in CASES.values()]
    dut = CounterChain(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS)
    results = run(dut, programs, lambda: True)
    for (name, (_, offsets)), (steps, _) in zip(CASES.items(), results):
        assert [step.offset for step in steps] == offsets, name


def random_program(rng: random.Random) -> ChainProgram:
    loops = []
    for index in range(rng.randint(1, LOOPS)):
        slope = rng.choice([0, 0, 1, -1, 2]) if index else 0
        base = rng.randint(-1, 4) if rng.random() < 0.3 else rng.randint(1, 4)
        loops.append(LoopProgram(base, rng.randint(-512, 511), slope, rng.randrange(max(index, 1))))
    return ChainProgram(tuple(loops))


def test_random_nests_with_stalls_equal_the_mirror(seed: int) -> None:
    rng = random.Random(seed)
    programs = [random_program(rng) for _ in range(150)]
    dut = CounterChain(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS)
    results = run(dut, programs, lambda: rng.random() < 0.7)
    for program, (steps, _) in zip(programs, results):
        assert steps == expected(program), program


def test_a_step_or_an_empty_loop_takes_one_cycle(seed: int) -> None:
    rng = random.Random(seed)
    programs = [random_program(rng) for _ in range(100)]
    dut = CounterChain(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS)
    for program, (_, cycles) in zip(programs, run(dut, programs, lambda: True)):
        assert cycles == len(list(cycles_of(program))), program


def test_programs_survive_packing(seed: int) -> None:
    rng = random.Random(seed)
    layout = chain_layout(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS)
    for _ in range(200):
        program = random_program(rng)
        unpacked = ChainProgram.unpack(layout, program.pack(layout))
        assert unpacked.loops[: len(program.loops)] == program.loops
        assert list(steps_of(unpacked))[-1:] == expected_unwrapped(program)[-1:]


def expected_unwrapped(program: ChainProgram) -> list[Step]:
    return list(
        steps_of(ChainProgram(program.loops + (LoopProgram(),) * (LOOPS - len(program.loops))))
    )


@pytest.mark.parametrize(
    ("loops", "rule"),
    [
        ((LoopProgram(64),), "Count of loop 0 must be below 64, not 64 to 64"),
        (
            (LoopProgram(9), LoopProgram(1, slope=8)),
            "Count of loop 1 must be below 64, not 1 to 65",
        ),
        ((LoopProgram(1, stride=512),), "Stride of loop 0 must be from -512 to 511, not 512"),
        ((LoopProgram(),) * 5, "at most 4 loops, not 5"),
    ],
)
def test_programs_that_do_not_fit_are_refused(loops: tuple[LoopProgram, ...], rule: str) -> None:
    layout = chain_layout(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS)
    with pytest.raises(ValueError, match=rule):
        ChainProgram(loops).pack(layout)


def test_a_count_may_only_depend_on_an_outer_loop() -> None:
    with pytest.raises(ValueError, match="Outer loop of loop 1 must lie outside it, not be 1"):
        ChainProgram((LoopProgram(2), LoopProgram(2, slope=1, outer=1)))
    with pytest.raises(BadInputError, match="Loop base must be an integer, not 1.5"):
        LoopProgram(1.5)
