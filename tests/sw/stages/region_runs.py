"""Runs of kernels without a product on chips: operands with special values, and random sides."""

import numpy as np

import tilewright as tw
from sim.operands import random_operand
from sw.ir.types import Role

__all__ = ["operand", "side", "verify"]


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


def side(rng, most):
    """Log-uniform, so that small sides are as frequent as large ones."""
    return round(most ** rng.random())
