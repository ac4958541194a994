"""Embedding: rows of a table in the order of their numbers."""

import sw.language as tw

__all__ = ["embedding"]


@tw.kernel("E[V, N], ids[M]: int32 -> Y[M, N]")
def embedding(E, ids, Y):
    """Gather a row of the table for each number; the table stays in memory."""
    M, N = Y.shape
    for i in tw.metapipe(M):
        rows = tw.load_tile(ids[i])
        for j in tw.metapipe(N):
            tw.store_tile(Y[i, j], tw.gather(E[:, j], rows))


@embedding.reference
def _(E, ids):
    return E[ids]
