"""Tiles that are stored as they are loaded, or in another format."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.numeric.formats import bf16, fp32, int8
from tests.sw.stages.region_runs import side, verify


@tw.kernel("X[M, N] -> Y[M, N]")
def copy(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]))


@tw.kernel("X[M, N]: bf16 -> Y[M, N]: fp32")
def widened(X, Y):
    for i in tw.metapipe(X.shape[0]):
        for j in tw.metapipe(X.shape[1]):
            tw.store_tile(Y[i, j], tw.load_tile(X[i, j]).to(tw.fp32))


@tw.kernel("X[M, N]: fp32 -> Y[M, N]: bf16")
def rounded(X, Y):
    tw.store_tile(Y[:, :], tw.load_tile(X[:, :]))


@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_copies_and_casts_equal_golden_on_random_shapes(config, seed):
    rng = random.Random(seed)
    for kernel, dtypes in ((copy, (bf16, fp32, int8)), (widened, (None,)), (rounded, (None,))):
        for dtype in dtypes:
            verify(kernel, config, (side(rng, 600), side(rng, 600)), dtype)


def test_copies_keep_every_bit():
    """Payloads of NaN too, which no lane would keep."""
    bits = np.random.default_rng(1).integers(0, 1 << 16, (40, 70), dtype=np.uint16)
    result = copy.run(bits.view(bf16.dtype), config="small", backend="emulator")
    assert result.verified
    assert result.outputs["Y"].tobytes() == bits.tobytes()


def test_a_copy_on_rtl_equals_golden_under_random_stalls(heavy, seed):
    verify(copy, "tiny", (9, 22), backend="rtl", seed=seed % 1000, jitter=20)


@tw.kernel("X[M, N] -> Y[N, M]")
def turned(X, Y):
    tw.store_tile(Y, tw.load_tile(X).T)


@tw.kernel("X[N, N] -> Y[N, N]")
def symmetric(X, Y):
    x = tw.load_tile(X)
    tw.store_tile(Y, x + x.T)


@pytest.mark.parametrize("config", ["tiny", "small"])
def test_whole_squares_may_be_transposed(config, seed):
    """A view of all rows and columns does not tell a square from its transpose."""
    draw = np.random.default_rng(seed)
    for rows, columns in ((32, 32), (24, 40)):
        x = draw.normal(size=(rows, columns)).astype(bf16.dtype)
        found = turned.run(x, config=config, backend="emulator")
        assert found.verified and (found.Y == x.T).all()
    found = symmetric.run(x[:, :24], config=config, backend="emulator")
    assert found.verified, found.problems
