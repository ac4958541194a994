"""Products of matrices keep the grid of `small` busy: cold, on the RTL, default schedule."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, int8
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.matmul import matmul

#: Rows, terms, columns and format of a product: the least utilization.
GOALS = {
    (64, 1024, 64, bf16): 0.70,
    (128, 128, 1024, bf16): 0.88,
    (256, 256, 256, bf16): 0.915,
    (256, 256, 256, int8): 0.85,
    (512, 512, 512, bf16): 0.985,
    (512, 512, 512, int8): 0.97,
}
#: Most cycles from the launch write to the first multiply-accumulate of 256³.
FIRST = 640


@pytest.mark.slow
@pytest.mark.parametrize("shape", GOALS, ids=lambda shape: "-".join(map(str, shape)))
def test_the_grid_is_busy(shape, heavy):
    m, k, n, fmt = shape
    problem = Problem(matmul, named["small"], {"M": m, "N": n, "K": k}, fmt, None)
    job = Job(problem, backend="rtl", seed=1)
    report = run(job, *compile_job(job)).report
    assert report["verified"]
    assert report["utilization"] >= GOALS[shape], report["cycles"]
    if (m, k, n) == (256, 256, 256):
        assert report["launch_to_first_mac"] <= FIRST
