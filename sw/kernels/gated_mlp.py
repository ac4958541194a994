"""Gated perceptron of a transformer: (silu(X·Wg) * (X·Wu))·Wd, the inner layer in blocks."""

import numpy as np

import sw.language as tw

__all__ = ["gated_mlp"]


@tw.kernel("X[M, D], Wg[D, F], Wu[D, F], Wd[F, D] -> Y[M, D]")
def gated_mlp(X, Wg, Wu, Wd, Y):
    """Gate one product by the SiLU of another and multiply by a third matrix."""
    (M, D), F = X.shape, Wg.shape[1]
    for i in tw.metapipe(M):
        x = tw.load_tile(X[i, :])
        y = tw.zeros(i, D)
        for f in tw.metapipe(F):
            gate, up = x @ tw.load_tile(Wg[:, f]), x @ tw.load_tile(Wu[:, f])
            h = (tw.silu(gate) * up).to(Wd.dtype)
            y += h @ tw.load_tile(Wd[f, :])
        tw.store_tile(Y[i, :], y)


@gated_mlp.reference
def _(X, Wg, Wu, Wd):
    gate = X @ Wg
    return gate / (1 + np.exp(-gate)) * (X @ Wu) @ Wd
