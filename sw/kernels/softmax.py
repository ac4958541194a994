"""Softmax of each row: exp(x - maximum of the row), divided by its sum."""

import numpy as np

import sw.language as tw

__all__ = ["softmax"]


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax(X, Y):
    """Normalize the exponentials of each row; any number of rows and columns."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        m = tw.row_max(x)
        e = tw.exp(x - m)
        r = tw.row_sum(e)
        tw.store_tile(Y[i, :], e / r)


@softmax.reference
def _(X):
    e = np.exp(X - X.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
