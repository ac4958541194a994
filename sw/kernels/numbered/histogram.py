"""Histogram: how often each number occurs."""

import numpy as np

import sw.language as tw

__all__ = ["histogram"]


@tw.kernel("ids[N]: int32, H[V, 1]: int32 -> H")
def histogram(ids, H):
    """Add one to a row of the counts in memory for each number."""
    (N,) = ids.shape
    for n in tw.metapipe(N):
        tw.scatter(H, tw.load_tile(ids[n]), tw.full(n, 1, 1, tw.int32), op="add")


@histogram.reference
def _(ids, H):
    return H + np.bincount(ids.astype(np.int64), minlength=len(H))[:, np.newaxis]
