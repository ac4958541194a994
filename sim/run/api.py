"""Python interface of kernels: ``kernel.run(...)`` and ``kernel.compile(...)``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, did_you_mean
from hw.numeric.formats import Format
from sim.files import require_writable
from sim.interrupt import interruptible
from sim.native.conditions import MemoryConditions
from sim.progress import Progress, shown_progress
from sim.rules import OPTIONS, Rule, load_config, path, validating
from sim.run.driver import compile_job
from sim.run.job import Job, Problem
from sim.run.launched_result import launched_result
from sim.run.result import RunResult, picture
from sw import results
from sw.language import Kernel, Schedule
from sw.language.bind import Bound
from sw.language.signature import Signature

if TYPE_CHECKING:
    from sw.compiled import Compiled
    from sw.known_parts import KnownParts

__all__ = ["KernelProgram", "compile_kernel", "problem_of", "run_kernel"]

_CONFIG = Rule("a name, the path of a TOML file or a ChipConfig", path.take)
_CONDITIONS = ("latency", "jitter", "stall", "error")
_JOB = ("warm", "max_cycles", "design", "waves", "use_cache")
#: Keywords of a run apart from the kernel's options, and those of a compilation alone.
_RUN = ("backend", "out", "place_seed", "seed", *_CONDITIONS, *_JOB, "profile", "progress")
_COMPILE = ("config", "schedule", "dtype", "out", "place_seed", "progress")


def _chip(config: str | os.PathLike[str] | ChipConfig) -> tuple[ChipConfig, str]:
    if isinstance(config, ChipConfig):
        return config, "configuration"
    name = config if isinstance(config, str) else str(_CONFIG.check("config", config))
    with validating("config"):
        return load_config(name, where="config"), name


def _require_known(kernel: Kernel, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a keyword that has no meaning."""
    for name in given:
        if name not in known:
            rule = f"one of {', '.join(known)}"
            raise BadInputError(
                f"unknown option {name!r}{did_you_mean(name, known) or f'; it must be {rule}'}",
                kind="unknown-option",
                where=kernel.name,
                value=name,
                rule=rule,
            )


def _split(kernel: Kernel, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into kernel options and run options."""
    own = {name: value for name, value in given.items() if name in kernel.options}
    return own, {name: value for name, value in given.items() if name not in own}


def _free_dims(kernel: Kernel) -> list[str]:
    """Dimensions that no input has: their sizes are arguments of a run."""
    signature = kernel.signature
    taken = {dim for each in signature.inputs for dim in each.dims}
    return [each for each in signature.dims if each not in taken]


def _job(
    problem: Problem, backend: str, inputs: Mapping[str, Any], options: Any, progress: Progress
) -> Job:
    seed = options.get("seed", 1)
    if options.get("waves") is not None:
        require_writable(OPTIONS["waves"].check("waves", options["waves"]), where="waves")
    conditions = MemoryConditions(
        seed=seed, **{name: options[name] for name in _CONDITIONS if name in options}
    )
    return Job(
        problem=problem,
        backend=backend,
        seed=seed,
        conditions=conditions,
        inputs=inputs,
        progress=progress,
        **{name: options[name] for name in _JOB if name in options},
    )


def _formats(bound: Bound, signature: Signature) -> Format | Mapping[str, Format]:
    """The common format of all inputs, or the format of each."""
    formats = {name: bound.formats[name] for name in (each.name for each in signature.inputs)}
    return next(iter(formats.values())) if len(set(formats.values())) == 1 else formats


def run_kernel(
    kernel: Kernel,
    *arrays: npt.ArrayLike,
    config: str | os.PathLike[str] | ChipConfig = "small",
    schedule: Schedule | None = None,
    backend: str = "rtl",
    progress: bool = True,
    **options: Any,
) -> RunResult:
    """Compile a kernel for a chip, run it on arrays, and compare the results with golden.

    Parameters
    ----------
    kernel : Kernel
    arrays : array
        Inputs in the signature's order; their types determine the formats.
    config : str, path or ChipConfig
        Named configuration, TOML file, or the chip itself.
    schedule : Schedule or None
    backend : str
        ``rtl``, ``cocotb``, ``emulator`` or ``golden``.
    progress : bool
        Whether to display progress on a terminal or in a notebook.
    options
        Options of the kernel; sizes of dimensions that no input has; ``out`` (format of the
        result), ``place_seed``, ``seed``; of the memory: ``latency``, ``jitter``, ``stall``,
        ``error`` (an ``ErrorAt``); ``warm``, ``max_cycles``, ``design``, ``waves``, ``use_cache``;
        ``profile``: take samples for the profile of the result, on the back end ``rtl``.

    Raises
    ------
    BadInputError
        If an option is unknown or invalid, or the kernel cannot be compiled.
    HangError, DeviceError
        If the launch hangs or ends with an error. A wrong result raises nothing: see ``verified``.
    """
    chip, name = _chip(config)
    free = _free_dims(kernel)
    _require_known(kernel, options, (*kernel.options, *free, "config", "schedule", *_RUN))
    own, rest = _split(kernel, options)
    bound = kernel.bind(*arrays)
    problem = Problem(
        kernel=kernel,
        config=chip,
        dims={**bound.dims, **{name: rest.pop(name) for name in free if name in rest}},
        dtype=_formats(bound, kernel.signature),
        out=rest.get("out"),
        options=own,
        schedule=Schedule() if schedule is None else schedule,
        place_seed=rest.get("place_seed", 1),
    )
    with interruptible(), shown_progress(progress) as shown:
        job = _job(problem, backend, bound.arrays, rest, shown)
        compiled, fields = compile_job(job)
        return launched_result(job, compiled, fields | {"config": name}, rest)


class KernelProgram(results.KernelProgram):
    """A kernel compiled for a chip: compiler output, and a method to run it.

    Parameters
    ----------
    problem : Problem
    name : str
        Name of the configuration.
    progress : bool
        Whether a terminal or a notebook shows that it takes time.
    known : KnownParts or None
        Parts of the kernel for this chip and seed that are compiled already.
    """

    def __init__(
        self,
        problem: Problem,
        name: str,
        *,
        progress: bool = True,
        known: KnownParts | None = None,
    ) -> None:
        # Imported late, as the compiler is.
        from sw.known_parts import KnownParts

        self._problem = problem
        self._name = name
        self._known = KnownParts() if known is None else known
        with interruptible(), shown_progress(progress) as shown, shown.step("compiling the kernel"):
            self._compiled: Compiled = problem.compile(self._known)

    def with_options(self, *, progress: bool = True, **options: Any) -> KernelProgram:
        """Compile the kernel with other values of its options; parts that are the same are kept.

        Parameters
        ----------
        progress : bool
        options
            Options of the kernel; those not given keep their values.

        Raises
        ------
        BadInputError
            If one is no option of the kernel, or it cannot be lowered or does not fit.
        """
        problem = self._problem
        values = {**problem.options, **options}
        other = dataclasses.replace(problem, options=values)
        return KernelProgram(other, self._name, progress=progress, known=self._known)

    @property
    def schedule(self) -> Schedule:
        """Every choice, the compiler's included."""
        return self._compiled.schedule

    @property
    def image(self) -> bytes:
        """The image that the chip loads, of a kernel of one part.

        Raises
        ------
        BadInputError
            If there are several, which are `images`.
        """
        if len(self.images) > 1:
            raise BadInputError(
                f"Kernel must have one part to have one image, not {len(self.images)}; each "
                "part's is in `images`",
                where=self._problem.kernel.name,
                value=len(self.images),
                rule="`images` has the image of each part",
            )
        return self.images[0]

    @property
    def images(self) -> tuple[bytes, ...]:
        """The image of each part, in the order of the launches."""
        return tuple(part.image for part in self._compiled.parts)

    @property
    def predicted_cycles(self) -> int:
        """Predicted cycles of a cold launch at a memory latency of 100 cycles."""
        return self._compiled.predicted_cycles

    def ir(self, after: str) -> str:
        """Text form of the program after a pass.

        Raises
        ------
        BadInputError
            If there is no such pass.
        """
        return self._compiled.ir(after)

    def report(self) -> str:
        """Choices and predicted cost as text."""
        return self._compiled.report()

    def __repr__(self) -> str:
        return f"<{self._problem.kernel.name} for {self._name}: {self._problem.params}>"

    def map(self) -> str:
        """SVG picture of the units and links in use, by net, with a legend."""
        return picture(self._compiled, self._problem, self._name)

    def map_text(self) -> str:
        """Chip map as text: units, streams with their rates, and what bounds the speed."""
        # Imported late, as the compiler is.
        from sw.chip_map import chip_map

        return chip_map(self._compiled)

    def _repr_svg_(self) -> str:
        return self.map()

    def run(
        self,
        *arrays: npt.ArrayLike,
        backend: str = "rtl",
        progress: bool = True,
        **options: Any,
    ) -> RunResult:
        """Run it, as by :func:`run_kernel`, on arrays of the sizes and formats it was compiled for.

        Raises
        ------
        BadInputError
            If the arrays have other sizes, or an option is one of the compiler's.
        """
        problem = self._problem
        free = _free_dims(problem.kernel)
        _require_known(problem.kernel, options, (*problem.kernel.options, *free, *_RUN))
        own, rest = _split(problem.kernel, options)
        fixed = {*own, *(rest.keys() & {"out", "place_seed", *free})}
        if fixed:
            raise BadInputError(
                f"{min(fixed)} must be given when the kernel is compiled, not when it runs",
                where=problem.kernel.name,
                value=min(fixed),
            )
        bound = problem.kernel.bind(*arrays)
        sizes = {name: problem.dims[name] for name in bound.dims}
        if sizes != dict(bound.dims):
            raise BadInputError(
                f"Arrays must have the sizes {sizes}, not {dict(bound.dims)}",
                where=problem.kernel.name,
                value=str(dict(bound.dims)),
            )
        for spec in problem.inputs:
            if bound.formats[spec.name] != spec.format:
                raise BadInputError(
                    f"Array {spec.name} must be {spec.format.name}, "
                    f"not {bound.formats[spec.name].name}",
                    where=spec.name,
                    value=bound.formats[spec.name].name,
                )
        with interruptible(), shown_progress(progress) as shown:
            job = _job(problem, backend, bound.arrays, rest, shown)
            compiled, fields = compile_job(job, self._compiled)
            return launched_result(job, compiled, fields | {"config": self._name}, rest)


def compile_kernel(
    kernel: Kernel,
    config: str | os.PathLike[str] | ChipConfig = "small",
    *,
    schedule: Schedule | None = None,
    dtype: Format | Mapping[str, Format] | None = None,
    out: Format | Mapping[str, Format] | None = None,
    place_seed: int = 1,
    progress: bool = True,
    **values: Any,
) -> KernelProgram:
    """Compile a kernel for a chip.

    Parameters
    ----------
    kernel : Kernel
    config : str, path or ChipConfig
    schedule : Schedule or None
    dtype, out : Format
        Formats of the inputs and outputs that declare none; for inputs also a mapping by name.
    place_seed : int
    progress : bool
        Whether a terminal or a notebook shows that it takes time.
    values
        Size of each dimension, and options of the kernel.

    Raises
    ------
    BadInputError
        If it cannot be lowered, or does not fit.
    """
    problem, name = problem_of(
        kernel, config, values, dtype=dtype, out=out, schedule=schedule, place_seed=place_seed
    )
    return KernelProgram(problem, name, progress=progress)


def problem_of(
    kernel: Kernel,
    config: str | os.PathLike[str] | ChipConfig,
    values: Mapping[str, Any],
    *,
    dtype: Any = None,
    out: Any = None,
    schedule: Schedule | None = None,
    place_seed: int = 1,
) -> tuple[Problem, str]:
    """The problem that the arguments of `compile_kernel` describe, and the name of its chip.

    Raises
    ------
    BadInputError
        If a value is none of a dimension or option, or the program breaks a rule.
    """
    chip, name = _chip(config)
    _require_known(kernel, values, (*kernel.signature.dims, *kernel.options, *_COMPILE))
    dims = {each: values[each] for each in kernel.signature.dims if each in values}
    problem = Problem(
        kernel=kernel,
        config=chip,
        dims=dims,
        dtype=dtype,
        out=out,
        options={each: value for each, value in values.items() if each not in dims},
        schedule=Schedule() if schedule is None else schedule,
        place_seed=place_seed,
    )
    return problem, name
