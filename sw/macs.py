"""Multiply-accumulates of a program, counted in its IR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from sw.ir.linear_conditions import seen_where
from sw.ir.nodes import Full, Loop, Matmul, Node, Powers, Value
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType
from sw.softmax.score_chain import Missed, score_chain

__all__ = ["count_macs"]


def count_macs(program: Program) -> int:
    """Count the multiply-accumulates of a program's products, clipped on tails.

    Padding and element math are not counted. Of a softmax over blocks, neither are the scores that
    a comparison of numbers hides, nor the sums of powers.

    Parameters
    ----------
    program : Program
        With all block sizes chosen.

    Raises
    ------
    KeyError
        If a block size is not chosen yet.
    """
    return _Counter(program).count(program.nodes, {})


class _Counter:
    def __init__(self, program: Program) -> None:
        self._makers: dict[str, Node] = {
            result.name: node for node in walk(program.nodes) for result in node.results
        }

    def count(self, nodes: Iterable[Node], index: dict[str, int]) -> int:
        nodes = tuple(nodes)
        # Scores that are not hidden, by the names of the scores and of their powers.
        shown: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, Powers):
                shown |= self._shown(node, index)
        total = 0
        for node in nodes:
            if isinstance(node, Matmul):
                total += self._product(node, index, shown)
            elif isinstance(node, Loop):
                total += self._loop(node, index)
        return total

    def _loop(self, loop: Loop, index: dict[str, int]) -> int:
        if not any(isinstance(node, Matmul) for node in walk(loop.body)):
            return 0
        end = loop.extent if loop.until is None else min(loop.extent, loop.until.evaluate(index))
        step = (loop.tile or 1) if loop.blocks else 1
        return sum(
            self.count(loop.body, {**index, loop.index: start}) for start in range(0, end, step)
        )

    def _product(self, node: Matmul, index: dict[str, int], shown: Mapping[str, int]) -> int:
        left, right = node.values[:2]
        result = _tile(node.result)
        rows, columns = result.rows.extent(index), result.cols.extent(index)
        terms = _tile(left).axis(0 if node.ta else 1).extent(index)
        if node.result.name in shown:
            return shown[node.result.name] * terms
        if left.name in shown:
            ones = isinstance(self._makers.get(right.name), Full)
            return 0 if ones else shown[left.name] * columns
        return rows * columns * terms

    def _shown(self, node: Powers, index: dict[str, int]) -> dict[str, int]:
        scores = node.values[0]
        try:
            chain = score_chain(scores, self._makers, node)
        except Missed:
            return {}
        tile = _tile(scores)
        rows = np.arange(tile.rows.extent(index))[:, np.newaxis]
        columns = np.arange(tile.cols.extent(index))
        seen: npt.NDArray[np.bool_] = np.ones((len(rows), len(columns)), np.bool_)
        for each in chain.hidden:
            for rule in seen_where(each.condition, self._makers, holds=not each.holds):
                base = rule.base.evaluate(index)
                seen = seen & (rule.rows * rows + rule.columns * columns + base >= 0)
        count = int(seen.sum())
        return {chain.product.result.name: count, node.results[2].name: count}


def _tile(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type
