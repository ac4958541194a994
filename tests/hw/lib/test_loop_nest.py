"""The counter chain against the loop nest it stands for."""

import dataclasses
import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.errors import BadInputError, HangError
from hw.arch.loops import ChainProgram, LoopProgram, chain_layout
from hw.lib.loop_nest import CounterChain
from tests.hw.lib.nest_bench import (
    LONG,
    SIZE,
    array_steps,
    chain_steps,
    issuer_chain,
    model_steps,
    small_nests,
)
from tests.hw.reused_simulator import Simulation
from tests.hw.step_model import Step, cycles_of, steps_of
from tests.native.stream_model import StreamModel
from tests.slow_cases import quick_first

LOOPS, COUNT_BITS, OFFSET_BITS = 4, 6, 10


def run(programs: list[ChainProgram], ready: Callable[[], bool]) -> list[Any]:
    """Steps of each program and the cycles they took."""
    results: list[tuple[list[Step], int]] = []
    simulator = Simulation(
        CounterChain, loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS
    )
    dut = simulator.design

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
    "three queries for every two keys": (
        (LoopProgram(4, stride=8), LoopProgram(4, stride=1, slope=3, shift=1)),
        [0, 1, *range(8, 11), *range(16, 21), *range(24, 30)],
    ),
    # Sums of -3, -2, -1, 0, 1, 2: toward zero, -1 >> 1 would be empty too, and 1 >> 1 not.
    "a shift rounds toward minus infinity": (
        (LoopProgram(6, stride=8), LoopProgram(-3, stride=1, slope=1, shift=1)),
        [40],
    ),
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
    results = run(programs, lambda: True)
    for (name, (_, offsets)), (steps, _) in zip(CASES.items(), results):
        assert [step.offset for step in steps] == offsets, name


def random_program(rng: random.Random) -> ChainProgram:
    loops = []
    for index in range(rng.randint(1, LOOPS)):
        slope = rng.choice([0, 0, 1, -1, 2]) if index else 0
        shift = rng.randint(0, 3) if slope else 0
        base = rng.randint(-1, 4) if rng.random() < 0.3 else rng.randint(1, 4)
        outer = rng.randrange(max(index, 1))
        loops.append(LoopProgram(base << shift, rng.randint(-512, 511), slope, outer, shift))
    return ChainProgram(tuple(loops))


def test_random_nests_with_stalls_equal_the_mirror(seed: int) -> None:
    rng = random.Random(seed)
    programs = [random_program(rng) for _ in range(150)]
    results = run(programs, lambda: rng.random() < 0.7)
    for program, (steps, _) in zip(programs, results):
        assert steps == expected(program), program


def test_a_step_or_an_empty_loop_takes_one_cycle(seed: int) -> None:
    rng = random.Random(seed)
    programs = [random_program(rng) for _ in range(100)]
    for program, (_, cycles) in zip(programs, run(programs, lambda: True)):
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
        (
            (LoopProgram(9), LoopProgram(1, slope=8, shift=3)),
            "Count of loop 1 before its shift must be below 64, not 1 to 65",
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


def test_a_shift_needs_a_slope_and_a_place_in_the_word() -> None:
    with pytest.raises(BadInputError, match="Loop shift must be 0 without a slope, not 2"):
        LoopProgram(8, shift=2)
    for shift in (-1, 8):
        rule = f"Loop shift must be an integer from 0 to 7, not {shift}"
        with pytest.raises(BadInputError, match=rule):
            LoopProgram(8, slope=1, shift=shift)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("slope", 0, "Loop shift must be 0 without a slope, not 3"),
        ("slope", 8, "Count of loop 1 before its shift must be below 64, not 8 to 64"),
    ],
)
def test_words_that_no_program_makes_are_refused(field: str, value: int, rule: str) -> None:
    layout = chain_layout(loops=LOOPS, count_bits=COUNT_BITS, offset_bits=OFFSET_BITS)
    word = ChainProgram((LoopProgram(8), LoopProgram(8, slope=1, shift=3))).pack(layout)
    assert ChainProgram.unpack(layout, word).loops[1] == LoopProgram(8, slope=1, shift=3)
    loops = layout["loops"].shape
    at = loops[1].offset + loops.elem_shape[field].offset
    word += value - 1 << at
    with pytest.raises(BadInputError, match=rule):
        ChainProgram.unpack(layout, word)


@pytest.fixture
def stand(pcu_units: Any) -> Any:
    """Model of a chain of an issuer's size, and the layout of its programs."""
    layout = chain_layout(loops=SIZE.loops, count_bits=16, offset_bits=SIZE.offset_bits)
    return pcu_units[2], layout


@pytest.mark.parametrize(
    "name",
    # The last three are short.
    quick_first(reversed(LONG), 3),
)
def test_no_count_is_wrong_at_the_ends_of_the_fields(stand: Any, name: str, seed: int) -> None:
    programs = [LONG[name]]
    sizes = {"loops": SIZE.loops, "offset_bits": SIZE.offset_bits}
    expected = model_steps(programs, **sizes)
    assert 0 < len(expected) < 1 << 18
    assert np.array_equal(array_steps(programs, **sizes), expected)
    steps = chain_steps(*stand, programs, len(expected), seed=seed, stall=0.1, prefix="chain_")
    assert np.array_equal(steps, expected)


def random_steps(rng: random.Random, nests: int) -> tuple[list[tuple[ChainProgram, int]], Any]:
    """Random nests, and their steps by the model, which the array form of the proof confirms."""
    sizes = {"loops": SIZE.loops, "offset_bits": SIZE.offset_bits}
    programs = list(itertools.islice(small_nests(rng, SIZE), nests))
    expected = model_steps(programs, **sizes)
    assert np.array_equal(array_steps(programs, **sizes), expected)
    return programs, expected


def test_hardware_model_and_array_form_take_the_same_steps(stand: Any, seed: int) -> None:
    programs, expected = random_steps(random.Random(seed), 2000)
    steps = chain_steps(*stand, programs, len(expected), seed=seed, stall=0.3, prefix="chain_")
    assert np.array_equal(steps, expected)


def test_iterations_are_counted_in_32_bits_and_follow_without_a_cycle(
    stand: Any, seed: int
) -> None:
    """A nest of one step, 2^17 times; then the carry into the upper half, one cycle a step."""
    programs = [(ChainProgram((LoopProgram(1),)), (1 << 17) + 3)]
    expected = model_steps(programs, loops=SIZE.loops, offset_bits=SIZE.offset_bits)
    steps = chain_steps(*stand, programs, len(expected), seed=seed, stall=0.0, prefix="chain_")
    assert np.array_equal(steps, expected)


@pytest.mark.slow
def test_a_logical_shift_is_caught(seed: int, heavy: None) -> None:
    programs, expected = random_steps(random.Random(seed), 500)
    stand = issuer_chain()
    design = emit(stand)
    text, edits = re.subn(r"(\$signed\(chain_sum_\d+\) )>>>", r"\1>>", design.text)
    assert edits >= SIZE.loops - 1
    fault = dataclasses.replace(design, text=text)
    # A negative sum gives a huge count, so all steps have come before all programs were taken.
    with (
        StreamModel(fault, stand) as model,
        pytest.raises(HangError, match=r"i_program \d+ of 500"),
    ):
        chain_steps(model, stand.layout, programs, len(expected), seed=seed, stall=0.0)
