"""Example 12. Quantized operands: rows in int8 with a scale each, and a product of them.

`.to` rounds to nearest even between floats and integers, and saturates; NaN becomes 0.
"""

import numpy as np

import tilewright as tw


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
    x = rng.normal(size=(90, 130)).astype(np.float32)
    w = rng.normal(size=(130, 50)).astype(np.float32)
    rows = quantized.run(x, config="small", backend="emulator")
    columns = quantized.run(w.T.copy(), config="small", backend="emulator")
    weights, scales = columns.Q.T.copy(), columns.s.ravel()
    result = scaled.run(rows.Q, weights, rows.s, scales, config="small", backend="emulator")
    print(result)
    wrong = np.abs(result.Y.astype(np.float32) - x @ w).max()
    print(f"largest error by quantization: {wrong:.2f}; largest sum: {np.abs(x @ w).max():.1f}")
