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
