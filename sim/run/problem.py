"""A problem: kernel, sizes, formats, chip, and the user's choices."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format
from sim.kernels import checked_options, summed
from sim.rules import OPTIONS, Integer, Rule, bad_value, instance
from sw.array_spec import ArraySpec
from sw.ir.format_rules import FORMATS, format_of, pred
from sw.ir.program import Program
from sw.ir.types import Role
from sw.language import Kernel, Schedule
from sw.language.schedule import check_schedule
from sw.passes.check import check

__all__ = ["MAX_ARRAY_BYTES", "MAX_EXTENT", "Problem"]

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
    dims : mapping of str to int
        Size of each dimension of the signature, 1 to `MAX_EXTENT`.
    dtype : Format, or mapping of str to Format, or None
        Format of the inputs that declare none, or of each by name.
    out : Format, or mapping of str to Format, or None
        Format of the outputs that declare none; None applies the language's rule.
    options : mapping of str to value
        Options of the kernel that differ from their defaults.
    schedule : Schedule
    place_seed : int
        Seed of the placement.

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

    @functools.cached_property
    def golden_program(self) -> Program:
        """The program that golden interprets: block sizes chosen, order of sums fixed."""
        return summed(self.program, self.schedule.tile)

    @functools.cached_property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Memory layout of the kernel's arguments in the order of its signature."""
        return tuple(
            ArraySpec(
                tensor.name,
                tensor.type.shape,
                tensor.type.format,
                output=tensor.type.role is not Role.IN,
            )
            for tensor in self.program.tensors
        )

    @property
    def inputs(self) -> tuple[ArraySpec, ...]:
        """Inputs of a run, including arrays updated in place."""
        roles = {tensor.name: tensor.type.role for tensor in self.program.tensors}
        return tuple(spec for spec in self.arrays if roles[spec.name] is not Role.OUT)

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
