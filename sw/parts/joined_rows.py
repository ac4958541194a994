"""Points whose rows follow one another: their blocks of rows are those of one longer loop."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, size_symbol
from sw.ir.rewrite import rebuild, walk
from sw.ir.types import TileType, View

__all__ = ["joined_rows", "row_loop"]

#: Nodes that compute each row of a tile from the same row of others, and of whole other tiles.
_BY_ROWS = (ir.Load, ir.Store, ir.Cast, ir.Full, ir.Map, ir.Powers, ir.Rescale, ir.Loop)


def row_loop(nodes: tuple[ir.Node, ...]) -> ir.Loop | None:
    """The loop over blocks of rows that, beside loads, is all of a program, row by row."""
    others = [node for node in nodes if not isinstance(node, ir.Load)]
    if len(others) != 1 or not isinstance(others[0], ir.Loop):
        return None
    loop = others[0]
    if not loop.blocks or loop.carries or loop.until is not None or loop.tile is not None:
        return None
    alike = all(_by_rows(node, loop) for node in walk(loop.body))
    return loop if alike else None


def joined_rows(loop: ir.Loop, points: int, tensors: Collection[str]) -> ir.Loop | None:
    """A loop over blocks of rows, of the rows of all points.

    Parameters
    ----------
    loop : Loop
        Of `row_loop`.
    points : int
        Number of points.
    tensors : collection of str
        Tensors whose rows follow one another; all others are the same at each point.

    Returns
    -------
    Loop or None
        None if the loop cuts another tensor, or one of these in another way.
    """
    index = Affine.of(loop.index)
    for node in walk(loop.body):
        if isinstance(node, ir.Load | ir.Store):
            of_rows = node.view.entries[0].start == index
            if of_rows != (node.view.tensor in tensors):
                return None
    before = loop.extent * (points - 1)

    def change(item: Any) -> Any:
        if isinstance(item, Axis) and loop.index in item.symbols:
            return Axis(
                item.size,
                tuple(rest + before if loop.index in rest.symbols else rest for rest in item.rests),
            )
        return item

    longer: ir.Loop = rebuild(loop, change)
    return longer.replace(extent=loop.extent * points)


def _by_rows(node: ir.Node, loop: ir.Loop) -> bool:
    """Whether a node in the loop computes a row from the same row, wherever the block begins."""
    types = [each.type for each in (*node.values, *node.results)]
    cut = [_cut(each.rows, loop) for each in types if isinstance(each, TileType)]
    if any(isinstance(each, TileType) and _cut(each.cols, loop) for each in types):
        return False
    if isinstance(node, ir.Matmul):
        return not (cut[0] and node.ta) and not cut[1]
    if isinstance(node, ir.Reduce):
        return node.axis == 1 or not cut[0]
    if isinstance(node, ir.Load | ir.Store):
        return _of_rows_alone(node.view, loop)
    if isinstance(node, ir.Loop) and node.until is not None:
        return loop.index not in node.until.symbols
    return isinstance(node, _BY_ROWS)


def _cut(axis: Axis, loop: ir.Loop) -> bool:
    """Whether an axis is a block of the loop."""
    return loop.index in axis.symbols or axis.size == size_symbol(loop.index)


def _of_rows_alone(view: View, loop: ir.Loop) -> bool:
    """Whether the loop cuts nothing of a view but its rows, if anything."""
    first, *others = view.entries
    if any(loop.index in each.start.symbols for each in others):
        return False
    return first.start == Affine.of(loop.index) or loop.index not in first.start.symbols
