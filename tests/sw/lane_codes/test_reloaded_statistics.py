"""Statistics that are read again as streams, and comparisons of numbers that are constants."""

import numpy as np
import pytest

import tilewright as tw
from tests.sw.stages.region_runs import side, verify


def log_softmax(x):
    d = x - tw.row_max(x)
    return d - tw.log(tw.row_sum(tw.exp(d)))


@tw.kernel("P[M, N], Q[M, N] -> L[M, 1]: fp32")
def difference(P, Q, L):
    """A statistic that a phase needs stays, when another one is loaded for it."""
    for i in tw.metapipe(P.shape[0]):
        p, q = log_softmax(tw.load_tile(P[i, :])), log_softmax(tw.load_tile(Q[i, :]))
        tw.store_tile(L[i, :], tw.row_sum(p - q))


@tw.kernel("X[M, N], y[M, 1]: int32 -> L[M, 1]: fp32, dX[M, N]")
def loss_and_gradient(X, y, L, dX):
    for i in tw.metapipe(X.shape[0]):
        x, c = tw.load_tile(X[i, :]), tw.load_tile(y[i, :])
        m = tw.row_max(x)
        e = tw.exp(x - m)
        z = tw.row_sum(e)
        t = tw.where(tw.col_index(x) == c, 1.0, 0.0)
        tw.store_tile(L[i, :], tw.log(z) + m - tw.row_sum(x * t))
        tw.store_tile(dX[i, :], e / z - t)


@tw.kernel("S[M, N] -> L[M, 1]: fp32")
def diagonal(S, L):
    """Of one row and column, both numbers are 0."""
    for i in tw.metapipe(S.shape[0]):
        s = tw.load_tile(S[i, :])
        own = tw.row_sum(tw.where(tw.col_index(s) == tw.row_index(i), s, 0.0))
        tw.store_tile(L[i, :], tw.row_max(s) - own)


KERNELS = [difference, loss_and_gradient, diagonal]


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_random_sides_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    verify(kernel, chip, (side(draw, 60), side(draw, 90)))


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_the_first_sides_that_failed_equal_golden(kernel):
    sides = (1, 1) if kernel is diagonal else (16, 32)
    verify(kernel, "small", sides)
