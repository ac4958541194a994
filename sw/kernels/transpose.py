"""Transpose of a matrix; every bit of an element is kept."""

import sw.language as tw

__all__ = ["transpose"]


@tw.kernel("X[M, N] -> Y[N, M]")
def transpose(X, Y):
    """Transpose block by block."""
    M, N = X.shape
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            tw.store_tile(Y[j, i], tw.load_tile(X[i, j]).T)


@transpose.reference
def _(X):
    return X.T
