"""Linear layer: product of two matrices, scaled, with a bias for each column."""

import sw.language as tw

__all__ = ["linear"]


@tw.kernel("X[M, K], W[K, N], b[N] -> Y[M, N]")
def linear(X, W, b, Y, scale=1.0):
    """Multiply matrices, scale the sums and add a bias, before they leave the product's units."""
    M, N = Y.shape
    for i in tw.metapipe(M):
        x = tw.load_tile(X[i, :])
        for j in tw.metapipe(N):
            y = x @ tw.load_tile(W[:, j])
            tw.store_tile(Y[i, j], y * scale + tw.load_tile(b[j]))


@linear.reference
def _(X, W, b, scale=1.0):
    return X @ W * scale + b
