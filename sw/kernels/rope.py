"""Rotary position embedding (RoPE): each row's halves are turned by an angle per column."""

import numpy as np

import sw.language as tw

__all__ = ["rope"]


@tw.kernel("X[M, N], cos[M, N], sin[M, N] -> Y[M, N]")
def rope(X, cos, sin, Y):
    """Rotate the halves of each row; an even number of columns."""
    for i in tw.metapipe(X.shape[0]):
        x, c, s = (tw.load_tile(each[i, :]).to(tw.fp32) for each in (X, cos, sin))
        a, b = tw.split_cols(x, 2)
        tw.store_tile(Y[i, :], x * c + tw.join_cols(-b, a) * s)


@rope.reference
def _(X, cos, sin):
    a, b = np.split(X, 2, axis=1)
    return X * cos + np.concatenate([-b, a], axis=1) * sin
