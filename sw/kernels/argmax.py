"""Argmax: the number of the column with the greatest element of each row."""

import numpy as np

import sw.language as tw

__all__ = ["argmax"]


@tw.kernel("X[M, N] -> I[M, 1]: int32")
def argmax(X, I):
    """Find the first greatest element of each row; N for a row that has a NaN."""
    M, N = X.shape
    for i in tw.metapipe(M):
        x = tw.load_tile(X[i, :])
        top = tw.row_max(x)
        tw.store_tile(I[i, :], tw.row_min(tw.where(x == top, tw.col_index(x), N)))


@argmax.reference
def _(X):
    first = X.argmax(axis=1, keepdims=True)
    return np.where(np.isnan(X).any(axis=1, keepdims=True), X.shape[1], first)
