"""What is run: a problem (kernel, sizes, formats, chip), and the conditions of a job."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from gen.design import Design
from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.few_collections import few_collections
from hw.numeric.formats import Format
from sim.backends.interface import Setup
from sim.kernels import checked_options, summed
from sim.native.conditions import MemoryConditions
from sim.progress import Progress
from sim.rules import OPTIONS, Integer, Rule, bad_value, instance, optional
from sw.array_spec import ArraySpec, arrays_of
from sw.gathers.row_limits import row_limits
from sw.ir.format_rules import FORMATS, format_of, pred
from sw.ir.program import Program
from sw.ir.types import Role
from sw.language import Kernel, Schedule
from sw.language.schedule import check_schedule
from sw.passes.check import check
from sw.softmax.online import is_exact

if TYPE_CHECKING:
    from sw.compiled import Compiled
    from sw.known_parts import KnownParts

__all__ = ["BACKENDS", "Job", "MAX_ARRAY_BYTES", "MAX_EXTENT", "Problem"]

Array = npt.NDArray[Any]

#: Largest extent of a dimension.
MAX_EXTENT = 1 << 16
#: Most bytes of all arrays; more would be simulated for days.
MAX_ARRAY_BYTES = 1 << 28

_SCHEDULE = instance("a Schedule", Schedule)
_FORMAT = Rule(f"one of {', '.join(name for name in FORMATS if name != pred.name)}", format_of)


def _formats(option: str, given: object, names: list[str]) -> Any:
    """Formats given by an option: none, one for all arrays, or by array name."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return _FORMAT.check(option, given)
    for name in given:
        if name not in names:
            raise bad_value(f"Array of {option}", name, f"one of {', '.join(names)}", where=option)
    return {name: _FORMAT.check(f"{option} of {name}", each) for name, each in given.items()}


@dataclasses.dataclass(frozen=True)
class Problem:
    """A kernel with everything that determines its image.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims, dtype, out, options, schedule, place_seed
        As of `sw.compiler.compile_kernel`; a dimension is 1 to `MAX_EXTENT`.

    Raises
    ------
    BadInputError
        If an option is invalid, the arrays are too large, or the program breaks a rule of the
        language.
    """

    kernel: Kernel
    config: ChipConfig
    dims: Mapping[str, int]
    dtype: Format | Mapping[str, Format] | None
    out: Format | Mapping[str, Format] | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    schedule: Schedule = dataclasses.field(default_factory=Schedule)
    place_seed: int = 1

    def __post_init__(self) -> None:
        extent = Integer(1, MAX_EXTENT)
        inputs = [each.name for each in self.kernel.signature.inputs]
        outputs = [each.name for each in self.kernel.signature.arguments if each.role is Role.OUT]
        plain = {
            "dims": {name: extent.check(name, value) for name, value in self.dims.items()},
            "dtype": _formats("dtype", self.dtype, inputs),
            "out": _formats("out", self.out, outputs),
            "options": checked_options(self.kernel, self.options),
            "schedule": _SCHEDULE.check("schedule", self.schedule),
            "place_seed": OPTIONS["place_seed"].check("place_seed", self.place_seed),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        check_schedule(self.schedule, self.program)
        size = sum(spec.bytes for spec in self.arrays)
        if size > MAX_ARRAY_BYTES:
            raise BadInputError(
                f"Arrays of {self.kernel.name} must take at most {MAX_ARRAY_BYTES} bytes, "
                f"not {size}",
                where=self.kernel.name,
                value=size,
                rule=f"at most {MAX_ARRAY_BYTES} bytes",
            )

    @functools.cached_property
    def program(self) -> Program:
        """The traced and checked program."""
        return check(self.kernel.trace(dtype=self.dtype, out=self.out, **self.dims, **self.options))

    def compile(self, known: KnownParts | None = None) -> Compiled:
        """Compile the kernel for the chip.

        Parameters
        ----------
        known : KnownParts or None
            Parts of this kernel for this chip and seed that are compiled already.

        Raises
        ------
        BadInputError
            If it cannot be lowered, does not fit, or is not live.
        """
        # Imported late: the compiler is large, and earlier refusals should not wait for it.
        from sw.compiler import compile_kernel

        with few_collections():
            return compile_kernel(
                self.kernel,
                self.config,
                dims=self.dims,
                dtype=self.dtype,
                out=self.out,
                options=self.options,
                schedule=self.schedule,
                place_seed=self.place_seed,
                program=self.program,
                known=known,
            )

    @functools.cached_property
    def golden_program(self) -> Program:
        """The program that golden interprets: block sizes chosen, order of sums fixed."""
        exact = is_exact({**self.kernel.options, **self.options})
        return summed(self.program, self.schedule.tile, exact=exact)

    @functools.cached_property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Memory layout of the kernel's arguments in the order of its signature."""
        return arrays_of(self.program)

    @property
    def inputs(self) -> tuple[ArraySpec, ...]:
        """Inputs of a run, including arrays updated in place."""
        roles = {tensor.name: tensor.type.role for tensor in self.program.tensors}
        return tuple(spec for spec in self.arrays if roles[spec.name] is not Role.OUT)

    @functools.cached_property
    def row_limits(self) -> dict[str, int]:
        """Rows that the numbers in an input may name, by input."""
        return row_limits(self.program)

    @property
    def outputs(self) -> tuple[ArraySpec, ...]:
        """Outputs of a run, including arrays updated in place."""
        return tuple(spec for spec in self.arrays if spec.output)

    @property
    def operand(self) -> Format:
        """Format of the first input, otherwise of the first output, used for peak and report."""
        return (*self.inputs, *self.outputs)[0].format

    @property
    def peak_macs_per_cycle(self) -> int | None:
        """Peak multiply-accumulates per cycle of that format; None if it is not multiplied."""
        narrow = self.operand.bits in (8, 16)
        return self.config.peak_macs_per_cycle(self.operand.bits) if narrow else None

    @property
    def params(self) -> dict[str, Any]:
        """Sizes and options, defaults included."""
        return {**self.dims, **self.kernel.options, **self.options}


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
    sample_every : int
        Cycles from one sample of the counters to the next, for a profile; 0 for none. Back ends
        other than ``rtl`` take none.

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
    sample_every: int = 0

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
            sample_every=self.sample_every,
        )
