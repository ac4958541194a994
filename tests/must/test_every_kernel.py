"""pipe-d: every kernel at random shapes: definition = golden = emulator = RTL by bytes.

The definition imports nothing of the project (`tests/sw/kernels/kernels_by_definition.py`). A run
also compares the memory around the arrays. Shapes are drawn until the RTL takes few enough cycles.
"""

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from sim.run.driver import compile_job, run
from sim.run.job import Job
from sw.macs import count_macs
from tests.sw.kernels.test_compiled_kernels import (
    blocks_of,
    few_keys,
    formats,
    narrow_rows,
    random_sizes,
)
from tests.sw.kernels.test_golden_kernels import KERNELS, operands, problem_of, require_definition

#: Shapes by chip: all, with more row blocks than PCUs, with rows longer than a slot.
SHAPES = {"small": (20, 5, 3), "tiny": (4, 1, 1), "large": (4, 1, 1)}
#: Most cycles predicted for a shape: of many rows or long ones and of one in four, and of others.
CYCLES = {"small": (80_000, 30_000), "tiny": (200_000, 40_000), "large": (80_000, 10_000)}
#: Kernels whose slots hold whole rows: of 2,048 columns or fewer, but on `tiny`.
WHOLE_ROWS = ("softmax", "rms_norm", "layer_norm", "argmax")
#: Shapes drawn for one that takes few enough cycles.
MOST_DRAWN = 400
GOAL = "20 random shapes on `small`, 4 on `tiny` and on `large`: equal by bytes to a definition"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


def drawn(rng, name, config, number, refusals):
    """A case that the RTL takes few enough cycles for, compiled; what is refused is noted."""
    shapes, many_rows, long_rows = SHAPES[config]
    rows = number < many_rows
    long = many_rows <= number < many_rows + long_rows
    dtype, out = formats(name)[number % len(formats(name))]
    most = CYCLES[config][not (rows or long or number % 4 == 0)]
    limit = 700
    for _ in range(MOST_DRAWN):
        sizes = random_sizes(rng, name, int(limit), many_rows=rows, long_rows=long)
        sizes = narrow_rows(name, config, few_keys(name, config, sizes))
        if long and name in WHOLE_ROWS and config != "tiny":
            sizes["N"] = int(rng.integers(2100, 3000))
        if not rows and not long:
            # Smaller the more often a shape was too large.
            limit = max(64, limit * 0.8)
        job = Job(problem_of(name, sizes, dtype, out, config=config))
        # fp32 has no products, so any rate serves.
        peak = job.problem.config.peak_macs_per_cycle(min(dtype.bits, 16))
        if count_macs(job.problem.golden_program) > most * peak:
            # Too many cycles by its products alone.
            continue
        try:
            compiled, fields = compile_job(job)
        except BadInputError as error:
            refusals.append(f"{sizes}: {error}")
            assert len(refusals) <= shapes / 4, refusals
            continue
        if compiled.predicted_cycles <= most:
            return job.problem, compiled, fields
    raise AssertionError(f"of {MOST_DRAWN} shapes none takes {most:,} cycles: {name}, {config}")


@pytest.mark.must("pipe-d", goal=GOAL)
@pytest.mark.parametrize("config", SHAPES)
@pytest.mark.parametrize("name", KERNELS)
def test_random_shapes_are_equal_by_bytes(name, config, seed, heavy, figure):
    rng = np.random.default_rng(seed)
    refusals, cycles = [], 0
    shapes, *_ = SHAPES[config]
    for number in range(shapes):
        problem, compiled, fields = drawn(rng, name, config, number, refusals)
        inputs = operands(rng, problem, mild=bool(rng.random() < 0.3))
        how = blocks_of(name, compiled)
        memory = int(rng.integers(1, 1000))
        for backend in ("emulator", "rtl"):
            told = (name, config, problem.dims, problem.dtype, problem.out, backend)
            job = Job(problem, backend=backend, inputs=inputs, seed=memory)
            outcome = run(job, compiled, fields)
            assert outcome.report["verified"], (*told, outcome.problems)
            bits = problem.config.pcu.function_bits
            require_definition(problem, inputs, outcome.outputs, bits, told, **how)
        cycles += outcome.report["cycles"]
    figure(f"{shapes} shapes on the RTL, {cycles:,} cycles, {len(refusals)} refused")
