"""Points of a sweep: a kernel at sizes and choices on a chip, by the names that options use."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hw import __version__
from hw.arch.errors import BadInputError, DeviceError, HangError
from hw.numeric.formats import named as formats
from sim.cli.kernel_lookup import file_of, load_kernel
from sim.cli.settings import problem_of_settings
from sim.native.conditions import MemoryConditions
from sim.rules import load_config
from sim.run.driver import compile_job, predicted_cycles, run
from sim.run.job import Job, Problem
from sim.sweep.workers import Died
from sim.user_files import running_file
from sw.language import Schedule

__all__ = ["KEPT", "Axis", "SweepPoint", "died_record", "points_of", "run_point"]

Value = int | bool | str

#: Fields of the report of a run that a point keeps.
KEPT = (
    *("verified", "cycles", "predicted_cycles", "utilization", "memory_utilization", "macs"),
    *("peak_macs_per_cycle", "dram_bytes_read", "dram_bytes_written", "error_of_bound"),
    *("out_dtype", "params", "schedule", "units_used", "parts", "image_bytes"),
    *("config_sha256", "image_sha256", "compile_seconds", "run_seconds"),
)
_CHOICES = tuple(each.name for each in dataclasses.fields(Schedule))


@dataclasses.dataclass(frozen=True)
class Axis:
    """Key of ``--set`` with the values that it takes, of all kernels or of one.

    Members
    -------
    key : str
    values : tuple
    kernel : str or None
    """

    key: str
    values: tuple[Value, ...]
    kernel: str | None = None


@dataclasses.dataclass(frozen=True)
class SweepPoint:
    """One run of a sweep, by the texts that ``tilewright run`` takes.

    Members
    -------
    kernel, config, dtype, backend : str
    settings : tuple of (str, value)
    latency, seed : int
    """

    kernel: str
    config: str
    dtype: str
    backend: str
    settings: tuple[tuple[str, Value], ...]
    latency: int
    seed: int

    @property
    def key(self) -> str:
        """Digest of what determines its result, files and release included."""
        files = [_digest(name) for name in (self.kernel, self.config)]
        text = json.dumps([dataclasses.astuple(self), files, __version__])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def group(self) -> str:
        """The problem: points of one group differ by chip and by choices of the schedule."""
        plain = [f"{key}={value}" for key, value in self.settings if not _chosen(key)]
        return " ".join([self.kernel, *plain, self.dtype])

    @property
    def label(self) -> str:
        """The whole point in a few words."""
        settings = [f"{key}={value}" for key, value in self.settings]
        return " ".join([self.kernel, *settings, self.dtype, self.config])

    def problem(self) -> Problem:
        """The problem that its texts name.

        Raises
        ------
        BadInputError
            If one names nothing, or the program refuses a value.
        """
        with running_file(file_of(self.kernel)):
            return problem_of_settings(
                load_kernel(self.kernel),
                load_config(self.config),
                formats[self.dtype],
                self.settings,
            )


def _digest(name: str) -> str | None:
    """Digest of the file that a name means, if it means one."""
    path = file_of(name) or Path(name)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _chosen(key: str) -> bool:
    return key.partition(".")[0] in (*_CHOICES, "place_seed")


def points_of(
    kernels: Sequence[str],
    configs: Sequence[str],
    axes: Sequence[Axis],
    *,
    dtypes: Sequence[str],
    backend: str,
    latency: int,
    seed: int,
) -> list[SweepPoint]:
    """Every combination of kernels, chips, formats and values, in this order.

    Raises
    ------
    BadInputError
        If a name means nothing, a key has no value or two axes, or an axis names another kernel.
    """
    for axis in axes:
        if axis.kernel not in (None, *kernels):
            raise BadInputError(
                f"--set must name a kernel of the sweep, one of {', '.join(kernels)}, "
                f"not {axis.kernel!r}",
                where="--set",
                value=axis.kernel,
                rule=f"one of {', '.join(kernels)}",
            )
    points = []
    for kernel, config, dtype in itertools.product(kernels, configs, dtypes):
        mine = [axis for axis in axes if axis.kernel in (None, kernel)]
        for values in itertools.product(*(axis.values for axis in mine)):
            settings = tuple((axis.key, value) for axis, value in zip(mine, values))
            points.append(SweepPoint(kernel, config, dtype, backend, settings, latency, seed))
    for point in points:
        try:
            point.problem()
        except BadInputError as error:
            # A value that this program or chip refuses is a result; a name of nothing is not.
            if error.kind.startswith("unknown") or error.where in ("--config", "--set"):
                raise
    return points


def _record(point: SweepPoint, status: str, **fields: Any) -> dict[str, Any]:
    kept = {name: fields.get(name) for name in KEPT}
    told = {"key": point.key, "point": dataclasses.asdict(point), "status": status}
    return {**told, "message": fields.get("message"), **kept}


def run_point(point: SweepPoint) -> dict[str, Any]:
    """Run one point; returns its record.

    Its ``status`` is ``verified``, ``wrong``, ``failed`` (a hang or an error of the chip) or
    ``refused`` (by the program's rules or the compiler), with the ``message``.
    """
    peak: dict[str, Any] = {}
    try:
        problem = point.problem()
        peak = {
            "peak_bytes_per_cycle": problem.config.peak_bytes_per_cycle,
            "chip_macs_per_cycle": problem.peak_macs_per_cycle,
        }
        job = Job(
            problem,
            backend=point.backend,
            seed=point.seed,
            conditions=MemoryConditions(latency=point.latency, seed=point.seed),
        )
        compiled, fields = compile_job(job)
        outcome = run(job, compiled, fields)
    except BadInputError as error:
        return _record(point, "refused", message=error.message) | peak
    except (HangError, DeviceError) as error:
        return _record(point, "failed", message=error.message) | peak
    report = dict(outcome.report)
    if report["predicted_cycles"] is None and compiled is not None:
        report["predicted_cycles"] = predicted_cycles(job, compiled)
    status = "verified" if report["verified"] else "wrong"
    message = "; ".join(outcome.problems) or None
    return _record(point, status, **report | {"message": message}) | peak


def died_record(point: SweepPoint, end: Died) -> dict[str, Any]:
    """Record of a point whose workers died."""
    return _record(point, "died", message=f"{end.workers} workers died with it: {end.reason}")
