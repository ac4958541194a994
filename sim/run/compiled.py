"""What the compiler gives, as far as a run needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sim.run.problem import Problem
from sw.arrays import ArraySpec
from sw.image import ChipProgram
from sw.ir.program import Program
from sw.language import Schedule

__all__ = ["CompiledKernel", "compile_problem"]


class CompiledKernel(Protocol):
    """A kernel lowered to the image of a chip."""

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Arguments of the launch, in order."""

    @property
    def golden_program(self) -> Program:
        """The program with its sums in their final order."""

    @property
    def schedule(self) -> Schedule:
        """Every choice, also the compiler's."""

    @property
    def chip(self) -> ChipProgram:
        """What the image holds."""

    @property
    def image(self) -> bytes:
        """The image in memory."""

    @property
    def units_used(self) -> Mapping[str, int]:
        """Units in use, by kind."""

    @property
    def predicted_cycles(self) -> int:
        """What the cost model expects of a cold launch at a latency of 100."""

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates."""

    @property
    def macs_issued(self) -> int:
        """Multiply-accumulates with those of padding."""

    @property
    def peak_macs_per_cycle(self) -> int:
        """Most multiply-accumulates a cycle of the whole chip."""

    @property
    def notes(self) -> Sequence[str]:
        """Where wishes were cut to the chip, a line each."""


def compile_problem(problem: Problem) -> CompiledKernel:
    """Lower a problem's kernel to its chip.

    Raises
    ------
    BadInputError
        If it cannot be lowered, does not fit, or would stop for ever.
    """
    # The compiler's packages are many; a refusal of what comes before should not wait for them.
    from sw.compiler import compile_kernel

    # Formats by name are checked as the program is traced again.
    dtype: Any = problem.dtype
    return compile_kernel(
        problem.kernel,
        problem.config,
        dims=problem.dims,
        dtype=dtype,
        out=problem.out,
        options=problem.options,
        schedule=problem.schedule,
        place_seed=problem.place_seed,
    )
