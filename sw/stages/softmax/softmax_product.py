"""Two products with a softmax of rows between them, over blocks of keys: softmax(c·Q·Kᵀ)·V."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

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
    ends : bool
        Whether the queries of a group leave out the blocks behind the last key that one may see.
    block : int or None
        Keys of a block as the schedule or the program asks, the unit of the running maximum; None
        leaves it to the compiler.
    loops : mapping of str to str
        Index of the loop over ``query`` and over ``key`` blocks, for each that exists.
    points : int
        Such products that one iteration computes beside one another, each on a share of the chip.
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
    ends: bool
    block: int | None
    loops: Mapping[str, str]
    points: int = 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the products of an iteration, over the keys that are seen."""
        seen = self.queries * self.keys
        if self.offset is not None:
            last = np.arange(self.queries, dtype=np.int64) + self.offset
            first = np.maximum(last - self.window + 1, 0) if self.window else 0
            seen = int((np.minimum(last, self.keys - 1) - first + 1).clip(0).sum())
        return self.points * seen * (self.depth + self.width)

    def text(self) -> str:
        """The two products, the rules of keys and the loops, as lines of text."""
        rules = "every key" if self.offset is None else f"keys to m + {self.offset}"
        rules += f", the last {self.window}" if self.window else ""
        return "\n".join(
            [
                f"{self.o} = softmax({self.scale:g} {self.q} @ {self.k}.T) @ {self.v}: "
                f"queries={self.queries} keys={self.keys} depth={self.depth} width={self.width}",
                f"row m sees {rules}",
                "loops: " + ", ".join(f"{role} {index}" for role, index in self.loops.items()),
                f"block: {self.block or 'any'}",
                f"points beside one another: {self.points}",
            ]
        )
