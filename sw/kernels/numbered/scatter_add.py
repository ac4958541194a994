"""Scatter-add: rows added to the rows of a table that their numbers name."""

import numpy as np

import sw.language as tw

__all__ = ["scatter_add"]


@tw.kernel("G[N, D]: int32, ids[N]: int32, T[V, D]: int32 -> T")
def scatter_add(G, ids, T):
    """Add a row to a row of the table in memory for each number."""
    N, D = G.shape
    for n in tw.metapipe(N):
        rows = tw.load_tile(ids[n])
        for d in tw.metapipe(D):
            tw.scatter(T[:, d], rows, tw.load_tile(G[n, d]), op="add")


@scatter_add.reference
def _(G, ids, T):
    T = T.copy()
    np.add.at(T, ids.astype(np.int64), G)
    return T
