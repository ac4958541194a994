"""Values that one image would store together, and parts of their own that take fewer cycles."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.job import Problem


@tw.kernel("X[M, N], dY[M, N], r[M, 1]: fp32, g[N] -> dX[M, N]")
def rms_norm_gradient(X, dY, r, g, dX):
    """With the reciprocal root mean squares of the forward pass."""
    for i in tw.metapipe(X.shape[0]):
        scale = tw.load_tile(r[i, :])
        dx, xh = tw.load_tile(dY[i, :]) * tw.load_tile(g), tw.load_tile(X[i, :]) * scale
        tw.store_tile(dX[i, :], (dx - xh * tw.row_mean(dx * xh)) * scale)


def compiled(rows, columns, chip="small"):
    return Problem(rms_norm_gradient, named[chip], {"M": rows, "N": columns}, bf16).compile()


@pytest.mark.slow
def test_a_value_does_not_join_where_few_chains_fit_then():
    """The sum beside a tile of fp32 leaves room for one chain; by itself it has eight."""
    found = compiled(512, 512)
    assert all("1 chains of" not in each.pipeline.summary for each in found.parts)
    assert found.predicted_cycles <= 175_000


def test_the_parts_equal_golden(seed):
    draw = np.random.default_rng(seed)
    x, d = (draw.normal(size=(150, 260)).astype(bf16.dtype) for _ in range(2))
    r = draw.random((150, 1)).astype(np.float32)
    g = draw.normal(size=260).astype(bf16.dtype)
    found = rms_norm_gradient.run(x, d, r, g, config="small", backend="emulator")
    assert found.verified, found.problems
