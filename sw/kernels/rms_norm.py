"""Root-mean-square normalization (RMSNorm) of each row, with a gain per column."""

import numpy as np

import sw.language as tw

__all__ = ["rms_norm"]


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def rms_norm(X, g, Y, eps=1e-5):
    """Divide each row by its root mean square and multiply by the gains."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        scale = tw.rsqrt(tw.row_mean(x * x) + eps)
        tw.store_tile(Y[i, :], x * scale * gain)


@rms_norm.reference
def _(X, g, eps=1e-5):
    return X / np.sqrt((X * X).mean(axis=1, keepdims=True) + eps) * g
