"""pipe-e: bytes of element math, softmax, norms and epilogues on the RTL, exact by formula."""

import math
import re

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX
from hw.arch.launch import ARGUMENT_BYTES, ENTRY_BYTES, HEADER_BYTES
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job
from tests.sw.kernels.test_golden_kernels import problem_of

#: Shapes of each kernel.
SHAPES = 4
#: Loads of a vector beside the rows of a product, and of one that is that of the transposes.
VECTOR_LOADS, TURNED_LOADS = 2, 1
#: Kernels with vectors along the columns, which are whole beats in each load if they are one box.
WITH_VECTORS = ("rms_norm", "layer_norm")
#: Largest side of a shape.
MOST = 500
CHIP = named["small"]
BEAT = CHIP.width_bits // 8
#: Words of 32 bits in a vector.
WORDS = CHIP.width_bits // 32
GOAL = "x read once and stored once, an epilogue's tile read once; vectors twice at most"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.must("pipe-e", goal=GOAL),
]


def beats(spec):
    """Bytes of an array that is read once: each row in whole beats."""
    rows, row = math.prod(spec.shape[:-1]), spec.shape[-1] * spec.format.bits // 8
    return rows * math.ceil(row / BEAT) * BEAT


def flat_beats(spec):
    """Bytes of an array that is read as one row; of one with gaps between its rows, none are."""
    row = spec.shape[-1] * spec.format.bits // 8
    gaps = row % BASE_ALIGNMENT
    return beats(spec) if gaps else math.ceil(math.prod(spec.shape[:-1]) * row / BEAT) * BEAT


def sides(rng, count, most):
    """Log-uniform sizes, one in eight of them 1."""
    drawn = np.exp(rng.uniform(0, np.log(most), count)).astype(int)
    return [1 if rng.random() < 0.125 else int(each) for each in drawn]


def vector_loads(part):
    """Loads of a vector: of rows on lanes one for each vector of words in a column of a group."""
    if part.plan is not None:
        return TURNED_LOADS if part.plan.product.turned else VECTOR_LOADS
    group = re.search(r"(\d+) rows per vector", part.pipeline.summary)
    return max(1, int(group[1]) // WORDS) if group else VECTOR_LOADS


def require_formula(job, compiled, told):
    """Run a job; each array is read and written as often as the formula says.

    Rows without gaps between them may be read as one.
    """
    outcome = run(job, *compiled)
    assert outcome.report["verified"], (told, outcome.problems)
    problem = job.problem
    arguments = math.ceil(len(problem.arrays) * ARGUMENT_BYTES / BEAT) * BEAT
    launch = ENTRY_BYTES + arguments + outcome.report["image_bytes"] - HEADER_BYTES
    times = {1: vector_loads(compiled[0].parts[0]), 2: 1}
    rows, flat = (
        sum(times[len(each.shape)] * bytes_of(each) for each in problem.inputs)
        for bytes_of in (beats, flat_beats)
    )
    read = outcome.report["dram_bytes_read"] - launch
    assert read in (rows, flat), told
    assert outcome.report["dram_bytes_written"] == sum(
        math.prod(each.shape) * each.format.bits // 8 for each in problem.outputs
    ), told
    return read


@pytest.mark.parametrize(
    "name", ["add", "silu", "gelu", "transpose", "softmax", "rms_norm", "layer_norm"]
)
def test_rows_are_read_once_and_stored_once(name, seed, heavy, figure):
    rng, total = np.random.default_rng(seed), 0
    for _ in range(SHAPES):
        sizes = dict(zip("MN", sides(rng, 2, MOST), strict=True))
        if name in WITH_VECTORS:
            sizes["N"] = min(sizes["N"], MAX_BOX)
        job = Job(problem_of(name, sizes, bf16, config="small"), seed=int(rng.integers(1, 1000)))
        total += require_formula(job, compile_job(job), (name, sizes))
    figure(f"{name}: {SHAPES} shapes, {total:,} bytes of arrays read")


@pytest.mark.parametrize("name", ["residual", "linear", "linear_gelu"])
def test_operands_of_an_epilogue_are_read_once(name, seed, heavy, figure):
    """In one block of rows, in which A and B are read once, too, in columns of whole beats."""
    rng, total, found = np.random.default_rng(seed), 0, 0
    while found < SHAPES:
        (rows,) = sides(rng, 1, 128)
        sizes = {"M": rows, "N": 64 * int(rng.integers(1, 3)), "K": 32 * int(rng.integers(1, 9))}
        job = Job(problem_of(name, sizes, bf16, config="small"), seed=int(rng.integers(1, 1000)))
        compiled = compile_job(job)
        plan = compiled[0].parts[0].plan
        if len(compiled[0].parts) > 1 or plan.row_blocks > 1 or not plan.resident:
            continue
        found += 1
        total += require_formula(job, compiled, (name, sizes))
    figure(f"{name}: {SHAPES} shapes, {total:,} bytes of arrays read")
