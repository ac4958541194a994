"""Attention in one pass over the keys, with a running maximum of the scores of each query."""

import numpy as np

import sw.language as tw
from hw.arch.errors import BadInputError

__all__ = ["attend", "flash_attention", "heads_per_group", "weighted"]

#: Start of a running maximum: finite, so that a row that sees no key yet subtracts no infinities.
LOWEST = -(2.0**20)


def heads_per_group(heads, groups):
    """Query heads that share a head of keys and values."""
    if heads % groups:
        raise BadInputError(f"H must be a multiple of G = {groups}, the heads of keys, not {heads}")
    return heads // groups


def weighted(e, V):
    """The product e @ V, to which values of weight 0 add nothing, even if they are not finite."""
    finite = np.isfinite(V)
    if finite.all():
        return e @ V
    counts = (e > 0).astype(float) @ (~finite).astype(float) > 0
    return np.where(counts, e @ V, e @ np.where(finite, V, 0))


def attend(q, K, V, scale, at=None, until=None, window=0):
    """Softmax(q Kᵀ · scale) V over blocks of keys; `at` is the last key that each row sees."""
    if window < 0:
        raise BadInputError(f"window must be a number of keys, 0 for all, not {window}")
    m, l, o = tw.full(q.rows, 1, LOWEST), tw.zeros(q.rows, 1), tw.zeros(q.rows, V.shape[1])
    for j in tw.metapipe(K.shape[0], until=until):
        k, v = tw.load_tile(K[j, :]), tw.load_tile(V[j, :])
        s = q @ k.T * scale
        if at is not None:
            s = tw.where(at >= tw.col_index(j), s, -tw.inf)
        if window:
            s = tw.where(at - tw.col_index(j) < window, s, -tw.inf)
        top = tw.maximum(m, tw.row_max(s))
        p, fade = tw.exp(s - top), tw.exp(m - top)
        l = l * fade + tw.row_sum(p)
        o = o * fade + p.to(V.dtype) @ v
        m = top
    return o / l


@tw.kernel(
    "Q[H, M, D], K[G, S, D], V[G, S, D] -> O[H, M, D]",
    sizes={"H": 4, "G": 2, "M": 64, "S": 64, "D": 16},
)
def flash_attention(Q, K, V, O, causal=False, window=0, exact=False):
    """Attention of H heads, H / G of them to the same keys and values.

    Causal: the last query sees all keys, and each one before it a key less. A window keeps the last
    `window` of these keys. `exact` keeps this form, instead of the one with a whole maximum.
    """
    (H, M, D), (G, S, _) = Q.shape, K.shape
    for g in tw.each(G):
        for r in tw.each(heads_per_group(H, G)):
            h = g * (H // G) + r
            for i in tw.metapipe(M):
                seen = {}
                if causal or window:
                    at, until = tw.row_index(i) + (S - M), i.stop + (S - M)
                    seen = {"at": at, "until": until, "window": window}
                q = tw.load_tile(Q[h, i, :])
                tw.store_tile(O[h, i, :], attend(q, K[g], V[g], D**-0.5, **seen))


@flash_attention.reference
def _(Q, K, V, causal=False, window=0):
    (H, M, D), S = Q.shape, K.shape[1]
    K, V = (np.repeat(x, H // len(x), axis=0) for x in (K, V))
    s = Q @ K.transpose(0, 2, 1) * D**-0.5
    before = np.arange(M)[:, np.newaxis] + (S - M) - np.arange(S)
    if causal or window:
        s = np.where((before >= 0) & (before < (window or S + M)), s, -np.inf)
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return weighted(e, V) / e.sum(axis=2, keepdims=True)
