"""Result of a run from Python, with what is made when it is asked for: prediction and profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sim.backends.interface import Answer
from sim.rules import OPTIONS
from sim.run.driver import predicted_cycles, run
from sim.run.job import Job
from sim.run.result import RunResult, picture

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["launched_result"]

_FLAG = OPTIONS["warm"]


def launched_result(
    job: Job, compiled: Compiled | None, fields: dict[str, Any], options: Mapping[str, Any]
) -> RunResult:
    """Run, and return the result with the picture of its chip.

    Cycles are predicted, and a profile is made, when they are first read.

    Parameters
    ----------
    job : Job
    compiled : Compiled or None
    fields : dict
        Fields of the report so far.
    options : mapping
        Options of the run, of which ``profile`` asks for samples.

    Raises
    ------
    BadInputError
        If ``profile`` is no flag.
    HangError, DeviceError
        As of `sim.run.driver.run`.
    """
    if compiled is None:
        return RunResult(run(job, compiled, fields))

    from sim.profile.collect import profile_of, sample_distance
    from sim.profile.run_profile import Profile

    if _FLAG.check("profile", options.get("profile", False)) and job.backend == "rtl":
        job = dataclasses.replace(job, sample_every=sample_distance(job, compiled))
    answers: list[Answer] = []
    outcome = run(job, compiled, fields, answers)
    return RunResult(
        outcome,
        picture(compiled, job.problem, fields["config"]),
        None if job.timed else lambda: predicted_cycles(job, compiled),
        lambda report: Profile(profile_of(job, compiled, report, answers)),
    )
