"""pipe-h, schedules: random schedules change no bits of a kernel, but by blocks of a softmax.

The definition imports nothing of the project (`tests/sw/kernels/kernels_by_definition.py`). A run
also compares the memory around the arrays.
"""

import dataclasses
import random

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from sim.campaign.generators.random_sizes import random_schedule
from sim.run.driver import compile_job, run
from sim.run.job import Job
from sw.language import Schedule
from tests.sw.kernels.test_compiled_kernels import blocks_of, formats, random_sizes
from tests.sw.kernels.test_golden_kernels import operands, problem_of, require_definition

#: Kernels with choices for a schedule.
KERNELS = (
    *("matmul", "gemm", "matmul_nt", "matmul_tn", "matmul_tt"),
    *("residual", "linear", "linear_gelu", "gated_mlp", "gda", "flash_attention"),
)
#: Chip and largest size of each problem of a kernel.
PROBLEMS = (("small", 90), ("small", 90), ("tiny", 30), ("small", 150))
SCHEDULES = 7
#: Schedules of each kernel that run on the RTL, too.
RTL_SCHEDULES = 6
#: Most cycles predicted of a run on the RTL.
MOST_CYCLES = 60_000
#: Schedules drawn for each one that is not refused.
MOST_DRAWN = 40
GOAL = "308 random schedules of 11 kernels, 66 on RTL: bits change by blocks of a softmax alone"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def without_one(draw, schedule):
    """The schedule without one of its choices."""
    fields = {
        each.name: dict(getattr(schedule, each.name)) for each in dataclasses.fields(Schedule)
    }
    field, name = draw.choice([(field, name) for field, names in fields.items() for name in names])
    del fields[field][name]
    return Schedule(**fields)


def compiled_with(problem, schedule):
    """A problem with a schedule, compiled; None if the compiler refuses it by value and rule."""
    job = Job(dataclasses.replace(problem, schedule=schedule), backend="emulator")
    try:
        return compile_job(job)
    except BadInputError as error:
        assert error.rule is not None and error.value is not None, (schedule, error)
        assert error.kind != "not-live", (schedule, error)
        return None


def drawn_schedule(draw, problem, most, blocks):
    """A random schedule; of a softmax over blocks its block alone can be chosen."""
    if "tile" in blocks:
        return Schedule(tile={"attend.j": problem.config.grid_rows * draw.randint(1, 16)})
    return random_schedule(draw, problem.program, problem.config, most=most)


def other_schedule(draw, problem, most, blocks, seen):
    """A schedule that is not refused; what is refused loses one choice after another."""
    for _ in range(MOST_DRAWN):
        schedule = drawn_schedule(draw, problem, most, blocks)
        while schedule not in (*seen, Schedule()):
            if found := compiled_with(problem, schedule):
                seen.append(schedule)
                return schedule, *found
            schedule = without_one(draw, schedule)
    raise AssertionError(f"{MOST_DRAWN} schedules refused: {problem.kernel.name} {problem.dims}")


def computed(problem, schedule, backend, inputs, compiled, fields, memory):
    """Outputs, verified against golden and the memory around them."""
    own = dataclasses.replace(problem, schedule=schedule)
    job = Job(own, backend=backend, inputs=inputs, seed=memory)
    outcome = run(job, compiled, fields)
    told = (problem.kernel.name, problem.dims, schedule, backend)
    assert outcome.report["verified"], (*told, outcome.problems)
    how = blocks_of(problem.kernel.name, compiled)
    bits = problem.config.pcu.function_bits
    require_definition(problem, inputs, outcome.outputs, bits, told, **how)
    return {name: array.tobytes() for name, array in outcome.outputs.items()}


@pytest.mark.must("pipe-h", goal=GOAL)
@pytest.mark.parametrize("name", KERNELS)
def test_no_schedule_changes_bits(name, seed, heavy, figure):
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    images, on_rtl = set(), 0
    for number, (config, most) in enumerate(PROBLEMS):
        dtype, out = formats(name)[-1 - number % len(formats(name))]
        problem = problem_of(name, random_sizes(rng, name, most), dtype, out, config=config)
        inputs = operands(rng, problem, mild=bool(rng.random() < 0.5))
        first, fields = compiled_with(problem, Schedule())
        blocks = blocks_of(name, first)
        wanted = computed(problem, Schedule(), "emulator", inputs, first, fields, 1)
        images.add(first.image_sha256)
        seen = []
        for _ in range(SCHEDULES):
            schedule, compiled, fields = other_schedule(draw, problem, most, blocks, seen)
            images.add(compiled.image_sha256)
            backends = ["emulator"]
            if on_rtl < RTL_SCHEDULES and compiled.predicted_cycles <= MOST_CYCLES:
                backends.append("rtl")
                on_rtl += 1
            for backend in backends:
                memory = draw.randint(1, 1000)
                got = computed(problem, schedule, backend, inputs, compiled, fields, memory)
                # Of floats, only those of a softmax over blocks depend on the blocks.
                if blocks_of(name, compiled) == blocks:
                    assert got == wanted, (name, problem.dims, schedule, backend)
    assert on_rtl == RTL_SCHEDULES
    # Many schedules are hints for the same plan, but not all.
    assert len(images) >= 2 * len(PROBLEMS), len(images)
    schedules = len(PROBLEMS) * SCHEDULES
    figure(f"{name}: {schedules} schedules, {len(images)} images, {on_rtl} on RTL")
