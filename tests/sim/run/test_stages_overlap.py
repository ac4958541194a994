"""Stages of a pipeline overlap on the RTL: a further iteration takes as long as the slowest stage.

Two launches differ in their rows alone. The cycles between them, over the busy cycles that the PCU
with most of them has more, are the initiation interval over the slowest stage.
"""

import pytest

from hw.arch.config import named
from hw.arch.unit_kind import PCU
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.gelu import gelu
from sw.kernels.layer_norm import layer_norm
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.rms_norm import rms_norm
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax

#: Iterations that one launch has more than the other, and the bound of the ratio.
ITERATIONS, BOUND = 32, 1.05
#: Kernel and its other dimensions. Stages of `rms_norm`, `layer_norm` and `linear_gelu` differ.
SMALL = [(kernel, {"N": 32}) for kernel in (silu, gelu, softmax, rms_norm, layer_norm)]
SMALL.append((linear_gelu, {"N": 32, "K": 64}))
CASES = [("tiny", kernel, {"N": 32}) for kernel in (silu, softmax, rms_norm)]
CASES += [pytest.param("small", *each, marks=pytest.mark.slow) for each in SMALL]


def _report(kernel, config, dims, seed):
    job = Job(Problem(kernel, config, dims, bf16), seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    return outcome.report


@pytest.mark.parametrize(
    ("chip", "kernel", "dims"), CASES, ids=lambda each: getattr(each, "name", None)
)
def test_iterations_take_the_time_of_the_slowest_stage(chip, kernel, dims, seed, heavy, figure):
    config = named[chip]
    # Blocks of as many rows as a vector has elements, for as many chains as there are PCUs.
    block = config.width_bits // bf16.bits * config.pcu_count
    few, many = (
        _report(kernel, config, {"M": rows, **dims}, seed)
        for rows in (2 * block, (2 + ITERATIONS) * block)
    )
    cycles = many["cycles"] - few["cycles"]
    busy = {
        name: unit["busy"] - few["counters"][name]["busy"]
        for name, unit in many["counters"].items()
        if unit["kind"] == PCU.name
    }
    slowest = max(busy, key=lambda name: busy[name])
    ratio = cycles / busy[slowest]
    figure(
        f"{chip} {kernel.name}: {cycles:,} cycles, {slowest} busy {busy[slowest]:,}: {ratio:.4f}"
    )
    assert 1 <= ratio <= BOUND, (cycles, busy)
