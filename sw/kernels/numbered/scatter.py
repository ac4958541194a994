"""Scatter: rows stored as the rows of a table that their numbers name."""

import sw.language as tw

__all__ = ["scatter"]


@tw.kernel("X[M, N], ids[M]: int32, T[V, N] -> T")
def scatter(X, ids, T):
    """Update rows of the table in memory; of two with one number the later one stays."""
    M, N = X.shape
    for i in tw.metapipe(M):
        rows = tw.load_tile(ids[i])
        for j in tw.metapipe(N):
            tw.scatter(T[:, j], rows, tw.load_tile(X[i, j]))


@scatter.reference
def _(X, ids, T):
    T = T.copy()
    T[ids] = X
    return T
