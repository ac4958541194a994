"""Attention as it is written: product, softmax of whole rows of scores, product."""

import numpy as np

import sw.language as tw

__all__ = ["attention"]


@tw.kernel("Q[H, M, D], K[H, S, D], V[H, S, D] -> O[H, M, D]", sizes={"H": 2, "D": 64})
def attention(Q, K, V, O, exact=False):
    """Attention of H heads, each with keys and values of its own.

    `exact` keeps whole rows of scores, instead of blocks of them with a running maximum.
    """
    H, M, D = Q.shape
    for h in tw.each(H):
        k, v = tw.load_tile(K[h]), tw.load_tile(V[h])
        for i in tw.metapipe(M):
            q = tw.load_tile(Q[h, i, :])
            s = q @ k.T * D**-0.5
            e = tw.exp(s - tw.row_max(s))
            r = tw.row_sum(e)
            o = e.to(V.dtype) @ v
            tw.store_tile(O[h, i, :], o / r)


@attention.reference
def _(Q, K, V):
    s = Q @ K.transpose(0, 2, 1) * Q.shape[2] ** -0.5
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return e @ V / e.sum(axis=2, keepdims=True)
