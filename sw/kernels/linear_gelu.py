"""Linear layer with a bias, GELU and a residual."""

import numpy as np

import sw.language as tw

__all__ = ["linear_gelu"]


@tw.kernel("X[M, K], W[K, N], b[N], R[M, N] -> Y[M, N]")
def linear_gelu(X, W, b, R, Y):
    """Multiply matrices, add a bias, apply GELU and add the residual."""
    M, N = Y.shape
    for i in tw.metapipe(M):
        x = tw.load_tile(X[i, :])
        for j in tw.metapipe(N):
            y = x @ tw.load_tile(W[:, j])
            y = tw.gelu(y + tw.load_tile(b[j]))
            tw.store_tile(Y[i, j], y + tw.load_tile(R[i, j]))


@linear_gelu.reference
def _(X, W, b, R):
    y = X @ W + b
    return y / (1 + np.exp(-1.5957691216057308 * (y + 0.044715 * y**3))) + R
