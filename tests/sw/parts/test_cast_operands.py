"""Operands of a product that are loaded in one format and cast to another pass through memory."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from sw.kernels.gemm import gemm

BF16 = ml_dtypes.bfloat16


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]")
def left(X, W, Y):
    w = tw.load_tile(W)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]).to(tw.bf16) @ w)


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]")
def right(X, W, Y):
    w = tw.load_tile(W).to(tw.bf16)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) @ w)


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]")
def both_in_blocks(X, W, Y):
    (M, K), N = X.shape, W.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                x, w = tw.load_tile(X[i, k]), tw.load_tile(W[k, j])
                acc += x.to(tw.bf16) @ w.to(tw.bf16)
            tw.store_tile(Y[i, j], acc)


@tw.kernel("X[M, K], W[N, K] -> Y[M, N]")
def transposed(X, W, Y):
    w = tw.load_tile(W).to(tw.bf16)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) @ w.T)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kernel", "x_format", "w_format"),
    [
        (left, np.float32, BF16),
        (left, np.int8, BF16),
        (right, BF16, np.int8),
        (right, BF16, np.float32),
        (transposed, BF16, np.float32),
        (both_in_blocks, np.float32, np.float32),
        (both_in_blocks, np.float32, np.int8),
    ],
)
def test_cast_operands_have_the_bits_of_a_product_of_cast_inputs(kernel, x_format, w_format, seed):
    rng = np.random.default_rng(seed)
    m, k, n = rng.integers(1, 60, 3)
    x = (40 * rng.normal(size=(m, k))).clip(-128, 127).astype(x_format)
    w = (40 * rng.normal(size=(k, n))).clip(-128, 127).astype(w_format)
    second = w.T.copy() if kernel is transposed else w
    result = kernel.run(x, second, config="tiny", backend="emulator", out=tw.fp32)
    assert result.verified
    assert (result.Y == gemm(x.astype(BF16), w.astype(BF16), out=tw.fp32)).all()


@tw.kernel("X[M, N]: int8 -> r[M, 1]: fp32, c[1, N]: fp32, t[1, 1]: fp32")
def sums_of_int8(X, r, c, t):
    x = tw.load_tile(X).to(tw.fp32)
    rows = tw.row_sum(x)
    tw.store_tile(r, rows)
    tw.store_tile(c, tw.col_sum(x))
    tw.store_tile(t, tw.col_sum(rows))


@tw.kernel("X[M, N]: int8 -> r[M, 1]: int32")
def uncast_sums(X, r):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(r[i, :], tw.row_sum(tw.load_tile(X[i, :])))


@pytest.mark.parametrize("config", ["tiny", "small"])
def test_statistics_of_int8_are_of_a_cast_in_memory(config, seed):
    x = np.random.default_rng(seed).integers(-100, 100, (20, 33)).astype(np.int8)
    found = sums_of_int8.run(x, config=config, backend="emulator")
    assert found.verified, found.problems
    assert (found.r[:, 0] == x.sum(1)).all() and (found.c[0] == x.sum(0)).all()
    assert found.t[0, 0] == x.sum()
    found = uncast_sums.run(x, config=config, backend="emulator")
    assert found.verified and (found.r[:, 0] == x.sum(1)).all()
