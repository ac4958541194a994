"""Layer normalization of each row, with a gain and a bias per column."""

import numpy as np

import sw.language as tw

__all__ = ["layer_norm"]


@tw.kernel("X[M, N], g[N], b[N] -> Y[M, N]")
def layer_norm(X, g, b, Y, eps=1e-5):
    """Subtract each row's mean, divide by its standard deviation, apply gain and bias."""
    gain, bias = tw.load_tile(g), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        d = x - tw.row_mean(x)
        scale = tw.rsqrt(tw.row_mean(d * d) + eps)
        tw.store_tile(Y[i, :], d * scale * gain + bias)


@layer_norm.reference
def _(X, g, b, eps=1e-5):
    d = X - X.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + eps) * g + b
