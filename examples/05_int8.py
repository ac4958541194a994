"""Example 5. int8 products with exact sums, stored as int32 or int8, or multiplied by scales.

Every rounding is written down: a product of int8 tiles is int32, and only `.to` or a store makes
it another format. `.to` rounds to nearest even between floats and integers, and saturates.
"""

import numpy as np

import tilewright as tw


@tw.kernel("A[M, K]: int8, B[K, N]: int8 -> C[M, N]")
def integers(A, B, C):
    """C = A B in int32, or saturated to the output's format."""
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, j])
            tw.store_tile(C[i, j], acc)


@integers.reference
def _(A, B):
    return A @ B


@tw.kernel("X[M, K] -> Q[M, K]: int8, s[M, 1]: fp32")
def quantized(X, Q, s):
    """Rows in int8, and the scale of each."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        scale = tw.row_max(abs(x)) * (1 / 127)
        tw.store_tile(s[i, :], scale)
        tw.store_tile(Q[i, :], (x / scale).to(tw.int8))


@tw.kernel("Q[M, K]: int8, W[K, N]: int8, s[M, 1]: fp32, t[N]: fp32 -> Y[M, N]: bf16")
def scaled(Q, W, s, t, Y):
    """Products of int8, times a scale for each row and one for each column."""
    for i in tw.metapipe(Q.shape[0]):
        for j in tw.metapipe(W.shape[1]):
            sums = tw.load_tile(Q[i, :]) @ tw.load_tile(W[:, j])
            y = sums.to(tw.fp32) * tw.load_tile(s[i, :]) * tw.load_tile(t[j])
            tw.store_tile(Y[i, j], y)


@scaled.reference
def _(Q, W, s, t):
    return (Q @ W) * s * t


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (90, 130), dtype=np.int8)
    b = rng.integers(-4, 5, (130, 50), dtype=np.int8)
    sums = a.astype(int) @ b
    for out in (tw.int32, tw.int8):
        result = integers.run(a, b, config="small", backend="emulator", out=out)
        limits = np.iinfo(result.C.dtype)
        assert (result.C == sums.clip(limits.min, limits.max)).all()
        print(result)

    x = rng.normal(size=(90, 130)).astype(np.float32)
    w = rng.normal(size=(130, 50)).astype(np.float32)
    rows = quantized.run(x, config="small", backend="emulator")
    columns = quantized.run(w.T.copy(), config="small", backend="emulator")
    result = scaled.run(
        rows.Q, columns.Q.T.copy(), rows.s, columns.s.ravel(), config="small", backend="emulator"
    )
    wrong = np.abs(result.Y.astype(np.float32) - x @ w).max()
    print(
        result, f"largest error by quantization: {wrong:.2f} of {np.abs(x @ w).max():.1f}", sep="\n"
    )
