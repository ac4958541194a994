"""Runs of kernels without a product on chips: operands with special values, and random sides."""

import dataclasses

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, PmuConfig, named
from sim.operands import random_operand
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.compiler import compile_kernel
from sw.ir.types import Role

__all__ = [
    "CHIPS",
    "LITTLE",
    "compiled_of",
    "operand",
    "require_predicted",
    "side",
    "summary",
    "verify",
]

#: A chip whose rows pass in pieces from 129 columns on.
LITTLE = dataclasses.replace(named["small"], pmu=PmuConfig(capacity_bytes=4096))
#: Chips of few and many PCUs, small PMUs, and one AGCU for wide vectors.
CHIPS = {
    "tiny": named["tiny"],
    "small": named["small"],
    "large": named["large"],
    "little": LITTLE,
    "wide": ChipConfig(rows=6, columns=6, width_bits=512, token_tracks=3, agcu=AgcuConfig(count=1)),
}


def operand(draw, shape, dtype):
    """Operands with special values; fp32 is no operand of products, so it has its own.

    Those of int32 are numbers of columns, and some that are none.
    """
    if dtype == tw.int32:
        return draw.integers(-5, 400, shape, np.int32)
    if dtype != tw.fp32:
        return random_operand(draw, shape, dtype)
    array = (draw.standard_normal(shape) * 10.0 ** draw.integers(-3, 3, shape)).astype(np.float32)
    array[draw.random(shape) < 0.02] = draw.choice([np.inf, -np.inf, np.nan, -0.0, 1e-40])
    return array


def _config(chip):
    return named[chip] if isinstance(chip, str) else chip


def compiled_of(kernel, chip, sizes, dtype=tw.bf16):
    """The kernel of M rows and N columns for a chip or the name of one."""
    dims = dict(zip("MN", sizes, strict=True))
    return compile_kernel(kernel, _config(chip), dims=dims, dtype=dtype)


def only_grids(monkeypatch, module, kept):
    """Let a module try the grids alone that a function says yes to."""
    tried = module.grids

    def some(*given, **more):
        return [each for each in tried(*given, **more) if kept(each)]

    monkeypatch.setattr(module, "grids", some)


def summary(kernel, chip, sizes, dtype=tw.bf16):
    """The choices of its first part."""
    return compiled_of(kernel, chip, sizes, dtype).parts[0].pipeline.summary


def verify(kernel, config, sizes, dtype=tw.bf16, *, backend="emulator", **more):
    """Run on a back end; the run itself compares with golden and checks the guards."""
    program = kernel.trace(dtype=dtype, **dict(zip("MN", sizes, strict=True)))
    inputs = [each.type for each in program.tensors if each.type.role is Role.IN]
    draw = np.random.default_rng(sizes)
    arrays = [operand(draw, each.shape, each.format) for each in inputs]
    result = kernel.run(*arrays, config=config, backend=backend, **more)
    assert result.verified, (kernel.name, sizes, dtype, result.problems)


def require_predicted(kernel, chip, sizes, dtype, seed):
    """Run on the RTL of a chip: bytes of golden, and the predicted cycles within 5 %."""
    problem = Problem(kernel, _config(chip), dict(zip("MN", sizes, strict=True)), dtype)
    job = Job(problem, backend="rtl", seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    cycles, predicted = (outcome.report[each] for each in ("cycles", "predicted_cycles"))
    assert predicted == pytest.approx(cycles, rel=0.05)


def side(rng, most):
    """Log-uniform, so that small sides are as frequent as large ones."""
    return round(most ** rng.random())
