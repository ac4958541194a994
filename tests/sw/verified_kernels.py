"""Runs of kernels at sizes of a test, which must equal golden by bytes."""

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem

__all__ = ["verified"]


def verified(kernel, sizes, config, seed, **more):
    """The outcome of a kernel of bf16 on a named chip, verified; `more` is of the `Job`."""
    job = Job(Problem(kernel, named[config], sizes, tw.bf16, None, {}), seed=seed, **more)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    return outcome
