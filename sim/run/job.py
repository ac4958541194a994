"""A job: a problem, the back end that runs it, and the run conditions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from gen.verilog import Design
from hw.arch.errors import BadInputError
from sim.backends.face import Setup
from sim.native.conditions import MemoryConditions
from sim.progress import Progress
from sim.rules import OPTIONS, Rule, bad_value, instance, optional
from sim.run.problem import Problem

__all__ = ["BACKENDS", "Job"]

Array = npt.NDArray[Any]

#: Back ends, and the options of a job that each does not have.
BACKENDS: Mapping[str, tuple[str, ...]] = {
    "rtl": (),
    "cocotb": ("latency", "jitter", "error"),
    "emulator": ("error", "warm", "waves", "design", "max_cycles"),
    "golden": ("error", "warm", "waves", "design", "max_cycles"),
}


_RULES: Mapping[str, Rule] = {
    **{name: OPTIONS[name] for name in ("seed", "warm", "max_cycles", "waves", "use_cache")},
    "design": optional(instance("a Design (sim.run.verilog_file.read_design)", Design)),
}


@dataclasses.dataclass(frozen=True)
class Job:
    """Parameters of one run.

    Parameters
    ----------
    problem : Problem
    backend : str
        One of `BACKENDS`.
    seed : int
        Seed of the operands and guard bytes.
    conditions : MemoryConditions
        Memory timing and errors, with a separate seed; untimed back ends ignore them.
    inputs : mapping of str to array, or None
        Inputs by name; None for random ones.
    warm : bool
        Whether to report a second launch of the same kernel, directly after the first.
    max_cycles : int or None
        Cycles after which a launch counts as a hang; by default from the prediction.
    design : Design or None
        Verilog to simulate instead of emitting it.
    waves : Path or None
    use_cache : bool
    progress : Progress
        Display of the steps under way.

    Raises
    ------
    BadInputError
        If the back end is unknown or does not support an option.
    """

    problem: Problem
    backend: str = "rtl"
    seed: int = 1
    conditions: MemoryConditions = MemoryConditions()
    inputs: Mapping[str, Array] | None = None
    warm: bool = False
    max_cycles: int | None = None
    design: Design | None = None
    waves: Path | None = None
    use_cache: bool = True
    progress: Progress = Progress()

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str) or self.backend not in BACKENDS:
            raise bad_value("backend", self.backend, f"one of {', '.join(BACKENDS)}")
        for name, rule in _RULES.items():
            object.__setattr__(self, name, rule.check(name, getattr(self, name)))
        asked = {
            "latency": self.conditions.latency != MemoryConditions().latency,
            "jitter": self.conditions.jitter != 0,
            "error": self.conditions.error is not None,
            "warm": self.warm,
            "waves": self.waves is not None,
            "design": self.design is not None,
            "max_cycles": self.max_cycles is not None,
        }
        options = {"error": "--error-at", "design": "--rtl"}
        for name in BACKENDS[self.backend]:
            if asked[name]:
                option = options.get(name, f"--{name.replace('_', '-')}")
                alias = f" ({name} in Python)" if name in options else ""
                raise BadInputError(
                    f"{option} must not be given with back end {self.backend}, which has no such "
                    f"thing{alias}",
                    where=option,
                    value=self.backend,
                    rule=f"not with {self.backend}",
                )

    @property
    def timed(self) -> bool:
        """Whether the back end has timing."""
        return self.backend in ("rtl", "cocotb")

    def setup(self) -> Setup:
        """Parameters for opening the back end."""
        return Setup(
            config=self.problem.config,
            conditions=self.conditions,
            design=self.design,
            waves=self.waves,
            use_cache=self.use_cache,
            progress=self.progress,
        )
