"""Gaussian error linear unit (GELU) of each element, in its tanh form."""

import numpy as np

import sw.language as tw

__all__ = ["gelu"]


@tw.kernel("X[M, N] -> Y[M, N]")
def gelu(X, Y):
    """Apply GELU to each element."""
    M, N = X.shape
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            tw.store_tile(Y[i, j], tw.gelu(tw.load_tile(X[i, j])))


@gelu.reference
def _(X):
    return X / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
