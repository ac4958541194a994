"""Scatter-add: rows added to the rows of a table that their numbers name."""

import numpy as np

import sw.language as tw

__all__ = ["scatter_add"]


@tw.kernel("G[N, D]: int32, ids[N]: int32, T[V, D]: int32 -> T", sizes={"D": 8, "V": 64})
def scatter_add(G, ids, T):
    """Add a row to a row of the table in memory for each number."""
    for n in tw.metapipe(G.shape[0]):
        rows, g = tw.load_tile(ids[n]), tw.load_tile(G[n, :])
        tw.scatter(T, rows, g, op="add")


@scatter_add.reference
def _(G, ids, T):
    T = T.copy()
    np.add.at(T, ids.astype(np.int64), G)
    return T
