"""Tuning of a kernel: a schedule found by predicted cycles, and chosen by measured ones."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sim.interrupt import interruptible
from sim.progress import Progress, shown_progress
from sim.rules import Integer, bad_value
from sim.run.api import problem_of
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.compiled import Compiled
from sw.ir.nodes import Loop
from sw.ir.rewrite import walk
from sw.ir.values import variable
from sw.language import Kernel, Schedule
from sw.language.schedule import schedule_names
from sw.tuned import Trial, Tuning

__all__ = ["MOST_TRIALS", "tune_kernel"]

MOST_TRIALS = 10_000
_PARALLEL = ("row_par", "col_par", "sum_par")


def tune_kernel(
    kernel: Kernel,
    config: str | os.PathLike[str] | ChipConfig = "small",
    *,
    dtype: Format | Mapping[str, Format] | None = None,
    out: Format | Mapping[str, Format] | None = None,
    schedule: Schedule | None = None,
    trials: int = 40,
    measured: int = 3,
    backend: str = "rtl",
    progress: bool = True,
    **values: Any,
) -> Tuning:
    """Find a faster schedule of a kernel.

    From the compiler's own schedule on, one choice at a time changes, to what is predicted to take
    the fewest cycles. The best of all then run, the compiler's own among them, so that the result
    is never slower than that.

    Parameters
    ----------
    kernel : Kernel
    config, dtype, out, schedule, values
        As of `compile_kernel`; choices of the schedule stay as they are.
    trials : int
        Most schedules to compile, the compiler's own included.
    measured : int
        Schedules to run beside it.
    backend : str
        ``rtl``, or ``emulator``, which verifies and predicts.
    progress : bool

    Raises
    ------
    BadInputError
        If an option is invalid, or the kernel cannot be compiled without changes.
    HangError, DeviceError
        If a launch hangs or ends with an error.
    """
    count = Integer(1, MOST_TRIALS)
    trials = count.check("trials", trials)
    measured = Integer(0, MOST_TRIALS).check("measured", measured)
    if backend not in ("rtl", "emulator"):
        raise bad_value("backend", backend, "rtl or emulator")
    problem, _ = problem_of(kernel, config, values, dtype=dtype, out=out, schedule=schedule)
    with interruptible(), shown_progress(progress) as shown:
        search = _Search(problem, trials)
        with shown.step("compiling schedules", trials) as done:
            search.climb(done)
        return search.measure(measured, backend, shown)


@dataclasses.dataclass(eq=False)
class _Candidate:
    schedule: Schedule
    compiled: Compiled | None
    refusal: str | None = None
    cycles: int | None = None

    @property
    def predicted(self) -> int | None:
        return None if self.compiled is None else self.compiled.predicted_cycles


class _Search:
    """Hill climbing by predicted cycles; every schedule is compiled once."""

    def __init__(self, problem: Problem, trials: int) -> None:
        self._problem = problem
        self._left = trials - 1
        self._exhausted = False
        own = problem.compile()
        self._found = {Schedule(): _Candidate(Schedule(), own)}

    def climb(self, done: Any) -> None:
        best = self._found[Schedule()]
        while True:
            around = [self._try(each, done) for each in self._changes(best)]
            tried = [each for each in around if each is not None]
            faster = [each for each in tried if each.predicted is not None]
            next_best = min([best, *faster], key=lambda each: each.predicted or 0)
            if next_best is best:
                self._exhausted = len(tried) == len(around)
                return
            best = next_best

    def _changes(self, at: _Candidate) -> Iterator[Schedule]:
        """The schedules that differ from a candidate's in one choice."""
        assert at.compiled is not None
        whole = at.compiled.schedule
        names = schedule_names(self._problem.program)
        fixed = self._problem.schedule
        for field in ("tile", *_PARALLEL, "slots"):
            for name in names[field]:
                if name in getattr(fixed, field):
                    continue
                now = getattr(whole, field).get(name)
                near = self._sizes(name, now) if field == "tile" else _near(field, now or 1)
                for value in near:
                    yield at.schedule | Schedule.of_options(**{field: {name: value}})

    def _sizes(self, index: str, now: int | None) -> list[int]:
        """Block sizes next to the one of a loop: doubled, halved, and a block more or fewer."""
        extents = (
            node.extent
            for node in walk(self._problem.program.nodes)
            if isinstance(node, Loop) and variable(node.index) == index
        )
        if now is None:
            return []
        whole, columns = next(extents), self._problem.config.grid_columns
        blocks = ceil_div(whole, now)
        counts = [each for each in (blocks - 1, blocks, blocks + 1) if each]
        equal = [ceil_div(ceil_div(whole, each), columns) * columns for each in counts]
        near = dict.fromkeys((now * 2, now // 2, *equal))
        return [each for each in near if each >= 1 and each != now]

    def _try(self, schedule: Schedule, done: Any) -> _Candidate | None:
        """The candidate of a schedule; None if there are no trials left."""
        if schedule not in self._found:
            if not self._left:
                return None
            self._left -= 1
            own = self._problem.schedule | schedule
            try:
                compiled = dataclasses.replace(self._problem, schedule=own).compile()
                self._found[schedule] = _Candidate(schedule, compiled)
            except BadInputError as error:
                self._found[schedule] = _Candidate(schedule, None, error.message)
            done(len(self._found))
        return self._found[schedule]

    def measure(self, most: int, backend: str, progress: Progress) -> Tuning:
        """Run the fastest schedules with images of their own, and the compiler's; choose."""
        first, *others = self._found.values()
        assert first.compiled is not None
        seen = {first.compiled.image_sha256}
        chosen = [first]
        for each in sorted(others, key=lambda each: each.predicted or 0):
            if each.compiled and len(chosen) <= most and each.compiled.image_sha256 not in seen:
                seen.add(each.compiled.image_sha256)
                chosen.append(each)
        verified = []
        for number, each in enumerate(chosen, 1):
            with progress.step(f"running {number} of {len(chosen)}"):
                if self._run(each, backend):
                    verified.append(each)
        trials = {
            each.schedule: Trial(
                schedule=each.schedule,
                predicted=each.predicted,
                measured=each.cycles,
                verified=each in verified if each in chosen else None,
                refusal=each.refusal,
            )
            for each in self._found.values()
        }
        fastest = min(verified or [first], key=lambda each: each.cycles or each.predicted or 0)
        return Tuning(tuple(trials.values()), trials[fastest.schedule], self._exhausted)

    def _run(self, candidate: _Candidate, backend: str) -> bool:
        """Run a candidate on random operands; whether it is verified."""
        own = self._problem.schedule | candidate.schedule
        job = Job(dataclasses.replace(self._problem, schedule=own), backend=backend)
        compiled, fields = compile_job(job, candidate.compiled)
        report = run(job, compiled, fields).report
        candidate.cycles = report["cycles"]
        return bool(report["verified"])


def _near(field: str, now: int) -> list[int]:
    """Numbers of units or slots next to the one of a choice."""
    near = (now - 1, now + 1, now * 2, now // 2) if field in _PARALLEL else (now - 1, now + 1)
    return [each for each in dict.fromkeys(near) if each >= 1 and each != now]
