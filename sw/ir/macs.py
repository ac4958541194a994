"""Multiply-accumulates of a program, counted in its IR."""

from __future__ import annotations

from collections.abc import Iterable

from sw.ir.nodes import Loop, Matmul, Node
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType

__all__ = ["count_macs"]


def count_macs(program: Program) -> int:
    """Count the multiply-accumulates of a program's products, clipped on tails.

    Padding and element math are not counted.

    Parameters
    ----------
    program : Program
        With all block sizes chosen.

    Raises
    ------
    KeyError
        If a block size is not chosen yet.
    """
    return _count(program.nodes, {})


def _count(nodes: Iterable[Node], index: dict[str, int]) -> int:
    total = 0
    for node in nodes:
        if isinstance(node, Matmul):
            total += _product(node, index)
        elif isinstance(node, Loop):
            total += _loop(node, index)
    return total


def _loop(loop: Loop, index: dict[str, int]) -> int:
    if not any(isinstance(node, Matmul) for node in walk(loop.body)):
        return 0
    end = loop.extent if loop.until is None else min(loop.extent, loop.until.evaluate(index))
    step = (loop.tile or 1) if loop.blocks else 1
    return sum(_count(loop.body, {**index, loop.index: start}) for start in range(0, end, step))


def _product(node: Matmul, index: dict[str, int]) -> int:
    left, result = node.values[0].type, node.result.type
    assert isinstance(left, TileType) and isinstance(result, TileType)
    terms = left.rows if node.ta else left.cols
    return terms.extent(index) * result.rows.extent(index) * result.cols.extent(index)
