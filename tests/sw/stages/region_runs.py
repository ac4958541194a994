"""Runs of kernels without a product on chips: operands with special values, and random sides."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.operands import random_operand
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.ir.types import Role

__all__ = ["operand", "require_predicted", "side", "verify"]


def operand(draw, shape, dtype):
    """Operands with special values; fp32 is no operand of products, so it has its own."""
    if dtype != tw.fp32:
        return random_operand(draw, shape, dtype)
    array = (draw.standard_normal(shape) * 10.0 ** draw.integers(-3, 3, shape)).astype(np.float32)
    array[draw.random(shape) < 0.02] = draw.choice([np.inf, -np.inf, np.nan, -0.0, 1e-40])
    return array


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
    config = named[chip] if isinstance(chip, str) else chip
    problem = Problem(kernel, config, dict(zip("MN", sizes, strict=True)), dtype)
    job = Job(problem, backend="rtl", seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    cycles, predicted = (outcome.report[each] for each in ("cycles", "predicted_cycles"))
    assert predicted == pytest.approx(cycles, rel=0.05)


def side(rng, most):
    """Log-uniform, so that small sides are as frequent as large ones."""
    return round(most ** rng.random())
