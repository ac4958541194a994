"""Compilation of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.run.problem import Problem

if TYPE_CHECKING:
    from sw.compiler import Compiled

__all__ = ["compile_problem"]


def compile_problem(problem: Problem) -> Compiled:
    """Compile a problem's kernel for its chip.

    Raises
    ------
    BadInputError
        If it cannot be lowered, does not fit, or is not live.
    """
    # Imported late: the compiler is large, and earlier refusals should not wait for it.
    from sw.compiler import compile_kernel

    return compile_kernel(
        problem.kernel,
        problem.config,
        dims=problem.dims,
        dtype=problem.dtype,
        out=problem.out,
        options=problem.options,
        schedule=problem.schedule,
        place_seed=problem.place_seed,
        program=problem.program,
    )
