"""Sigmoid linear unit (SiLU, swish) of each element: x / (1 + exp(-x))."""

import numpy as np

import sw.language as tw

__all__ = ["silu"]


@tw.kernel("X[M, N] -> Y[M, N]")
def silu(X, Y):
    """Apply SiLU to each element."""
    M, N = X.shape
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            tw.store_tile(Y[i, j], tw.silu(tw.load_tile(X[i, j])))


@silu.reference
def _(X):
    return X / (1 + np.exp(-X))
