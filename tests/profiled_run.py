"""A profile of a run, for tests: with the options of a job, and samples on the RTL."""

import dataclasses

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.native.conditions import MemoryConditions
from sim.profile.collect import profile_of, sample_distance
from sim.profile.schema import check_profile
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.language import Schedule

__all__ = ["busy_cycles", "profiled"]


def profiled(
    kernel,
    dims,
    *,
    config="tiny",
    backend="rtl",
    schedule=None,
    warm=False,
    every=None,
    options=None,
    out=None,
    **conditions,
):
    """Profile of a run that is verified, checked against its schema."""
    problem = Problem(
        kernel,
        named.get(config, config),
        dims,
        bf16,
        out=out,
        options=options or {},
        schedule=schedule or Schedule(),
    )
    config = config if config in named else "custom"
    job = Job(problem, backend, conditions=MemoryConditions(**conditions), warm=warm)
    compiled, fields = compile_job(job)
    if backend == "rtl":
        every = every or sample_distance(job, compiled)
        job = dataclasses.replace(job, sample_every=every)
    answers = []
    outcome = run(job, compiled, fields | {"config": config}, answers)
    assert not outcome.problems, outcome.problems
    return check_profile(profile_of(job, compiled, outcome.report, answers))


def busy_cycles(profile):
    """Busy cycles of each unit in use, by its causes."""
    return {
        unit["name"]: sum(each["cycles"] for each in unit["causes"] if each["cause"] == "busy")
        for unit in profile["units"]
        if unit["used"]
    }
