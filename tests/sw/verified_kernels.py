"""Kernels of bf16 at the sizes of a test: their programs, and runs that must equal golden."""

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.simplify import simplify

__all__ = ["lean", "verified"]


def verified(kernel, sizes, config, seed, **more):
    """The outcome of a kernel of bf16 on a named chip, verified; `more` is of the `Job`."""
    job = Job(Problem(kernel, named[config], sizes, tw.bf16, None, {}), seed=seed, **more)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    return outcome


def lean(kernel, **sizes):
    """The simplified program of a kernel."""
    return simplify(accumulate(check(kernel.trace(dtype=tw.bf16, **sizes))))
