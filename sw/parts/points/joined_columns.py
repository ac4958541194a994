"""Points that multiply one tile by a matrix of their own: its columns are those of one product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.infer import RuleError
from sw.ir.rewrite import walk
from sw.ir.types import Entry, Tensor
from sw.parts.points.longer_loop import with_longer_loop
from sw.parts.points.point_slice import PointSlice
from sw.parts.points.whole_tiles import WholeTiles

__all__ = ["of_all_columns"]

#: Nodes that compute each column of a tile from the same column of others; reductions may not.
_BY_COLUMNS = (ir.Load, ir.Store, ir.Cast, ir.Full, ir.Map, ir.Matmul, ir.Reduce, ir.Loop)


def of_all_columns(
    nodes: tuple[ir.Node, ...], points: ir.Loop, slices: Sequence[PointSlice]
) -> list[tuple[tuple[ir.Node, ...], list[PointSlice]]]:
    """Nodes and slices with the columns of all points of the innermost loop over them.

    Parameters
    ----------
    nodes : tuple of Node
        Those of a point, on matrices and vectors.
    points : Loop
    slices : sequence of PointSlice
        All that a point accesses.

    Returns
    -------
    list of (tuple of Node, list of PointSlice)
        Empty if points are no columns of one product.
    """
    own = frozenset(each.tensor.name for each in slices if each.strides[points.index])
    axes = _column_axes(nodes, own)
    if axes is None or any(each.spec.output and each.tensor.name not in own for each in slices):
        return []
    made = [
        each.with_columns(points, axes[each.tensor.name]) if each.tensor.name in own else each
        for each in slices
    ]
    whole = [each for each in made if each is not None]
    if len(whole) < len(made):
        return []
    columns = next(each.tensor.type.shape[-1] for each in slices if each.spec.output)
    tensors = {each.tensor.name: each.tensor for each in whole}
    wider = _joined_columns(nodes, columns, points.extent, axes, tensors)
    return [(wider, whole)] if wider is not None else []


def _column_axes(nodes: tuple[ir.Node, ...], own: frozenset[str]) -> dict[str, int] | None:
    """The axis of each tensor that runs along the columns of the only product of a program.

    Parameters
    ----------
    nodes : tuple of Node
        Those of a point, on matrices and vectors.
    own : frozenset of str
        Tensors of which each point has a slice of its own.

    Returns
    -------
    dict of str to int or None
        For each of these, -1, or 0 if the product takes its rows as columns. None if there is not
        one product, or if it takes a tile of its own on the left.
    """
    loads = {each.result.name: each for each in walk(nodes) if isinstance(each, ir.Load)}
    products = [each for each in walk(nodes) if isinstance(each, ir.Matmul)]
    if len(products) != 1:
        return None
    left, right = (loads.get(each.name) for each in products[0].values[:2])
    if left is None or right is None or left.view.tensor in own or right.view.tensor not in own:
        return None
    return dict.fromkeys(own, -1) | {right.view.tensor: 0 if products[0].tb else -1}


def _joined_columns(
    nodes: tuple[ir.Node, ...],
    columns: int,
    points: int,
    axes: Mapping[str, int],
    tensors: Mapping[str, Tensor],
) -> tuple[ir.Node, ...] | None:
    """Nodes of all points, whose tiles have the columns of all of them.

    Parameters
    ----------
    nodes : tuple of Node
    columns, points : int
        Columns of a point's result, and the number of points.
    axes : mapping of str to int
        Of `_column_axes`.
    tensors : mapping of str to Tensor
        All tensors, with the columns of all points where they have an axis.

    Returns
    -------
    tuple of Node or None
        None if a node does not compute each column alike.
    """
    views = [node.view for node in walk(nodes) if isinstance(node, ir.Load | ir.Store)]
    cut = {each.entries[axes[each.tensor]].start for each in views if each.tensor in axes}
    loops = [each for each in walk(nodes) if isinstance(each, ir.Loop) and each.blocks]
    loop = next((each for each in loops if cut == {Affine.of(each.index)}), None)
    if loop is None:
        every = Entry(Affine(), Axis(columns * points))
        try:
            return WholeTiles(nodes, 1, columns, every, axes, tensors).block(nodes)
        except RuleError:
            return None
    others = (each for each in views if each.tensor not in axes)
    if any(loop.index in entry.start.symbols for each in others for entry in each.entries):
        return None
    if loop.extent != columns or loop.until is not None or not _is_alike(loop):
        return None
    return with_longer_loop(nodes, loop, points)


def _is_alike(loop: ir.Loop) -> bool:
    """Whether the body computes each column alike, wherever the block begins.

    Its product is that of `_column_axes`, which takes no columns on the left.
    """
    for node in walk(loop.body):
        if isinstance(node, ir.Reduce) and node.axis == 1:
            return False
        if not isinstance(node, _BY_COLUMNS):
            return False
    return True
