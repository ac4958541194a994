"""Attention to keys and values that lie in a pool, at rows given by their numbers."""

import numpy as np

import sw.language as tw
from sw.kernels.flash_attention import attend, flash_attention, heads_per_group

__all__ = ["paged_attention"]


@tw.kernel(
    "Q[H, M, D], K[R, G, D], V[R, G, D], rows[S]: int32 -> O[H, M, D]",
    sizes={"H": 4, "G": 2, "M": 8, "S": 64, "R": 96, "D": 16},
)
def paged_attention(Q, K, V, rows, O, causal=False, window=0, exact=False):
    """Attention of M queries to S keys, of which key j is row `rows[j]` of the pool.

    A table of pages of P keys gives rows `page * P + offset`. Options as of `flash_attention`.
    """
    (H, M, D), (_, G, _), S = Q.shape, K.shape, rows.shape[0]
    k, v = (tw.local(G, S, D, dtype=pool.dtype, spill=True) for pool in (K, V))
    for g in tw.each(G):
        for j in tw.metapipe(S):
            numbers = tw.load_tile(rows[j])
            tw.store_tile(k[g, j, :], tw.gather(K[:, g, :], numbers))
            tw.store_tile(v[g, j, :], tw.gather(V[:, g, :], numbers))
    for g in tw.each(G):
        for r in tw.each(heads_per_group(H, G)):
            h = g * (H // G) + r
            for i in tw.metapipe(M):
                at, until = tw.row_index(i) + (S - M), i.stop + (S - M)
                seen = {"at": at, "until": until, "window": window} if causal or window else {}
                q = tw.load_tile(Q[h, i, :])
                tw.store_tile(O[h, i, :], attend(q, k[g], v[g], D**-0.5, **seen))


@paged_attention.reference
def _(Q, K, V, rows, causal=False, window=0):
    k, v = (np.swapaxes(pool[rows], 0, 1) for pool in (K, V))
    return flash_attention.reference(Q, k, v, causal=causal, window=window)
