"""Two products with a softmax of rows between them, over blocks of keys: softmax(c·Q·Kᵀ)·V."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

__all__ = ["SoftmaxProduct"]


@dataclasses.dataclass(frozen=True)
class SoftmaxProduct:
    """O[m, e] = Σ over keys s of p[m, s] · V[s, e], with p the softmax of a row of scores.

    The scores are scale · Q[m, :] · K[s, :]. All tensors are bf16 and row-major; the maximum of a
    row is a running one, as `hw.numeric.fused_softmax` computes it.

    Parameters
    ----------
    queries, keys : int
        Rows of Q and O; rows of K and V.
    depth, width : int
        Columns of Q and K; columns of V and O.
    q, k, v, o : str
        Tensors.
    scale : float
        Factor of the scores, above 0.
    offset : int or None
        Row m sees the keys s <= m + offset; None: every key.
    window : int
        Row m sees the keys s > m + offset - window; 0: no such rule.
    block : int or None
        Keys of a block as the schedule or the program asks, the unit of the running maximum; None
        leaves it to the compiler.
    loops : mapping of str to str
        Index of the loop over ``query`` and over ``key`` blocks, for each that exists.
    """

    queries: int
    keys: int
    depth: int
    width: int
    q: str
    k: str
    v: str
    o: str
    scale: float
    offset: int | None
    window: int
    block: int | None
    loops: Mapping[str, str]
