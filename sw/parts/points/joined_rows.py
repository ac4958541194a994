"""Points whose rows are those of one longer loop, of which all tensors have a row for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.ir.infer import RuleError
from sw.ir.rewrite import rebuild, walk
from sw.ir.types import Entry, Tensor, TileType, View
from sw.parts.points.longer_loop import with_longer_loop
from sw.parts.points.whole_tiles import WholeTiles
from sw.parts.slices import whole_block

__all__ = [
    "cut_tensors",
    "joined_rows",
    "right_operands",
    "row_loop",
    "whole_rows_loop",
    "with_values_inside",
    "without_single_blocks",
]

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
    return loop if _is_alike(loop) else None


def with_values_inside(nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
    """The nodes with what a program makes of loads before its only loop, such as casts, in it."""
    loads = tuple(each for each in nodes if isinstance(each, ir.Load))
    *before, last = [each for each in nodes if not isinstance(each, ir.Load)]
    made = {value.name for each in before for value in each.results}
    moves = all(isinstance(each, ir.Cast | ir.Map | ir.Full) for each in before)
    if not isinstance(last, ir.Loop) or not moves:
        return nodes
    if any(value.name in made for each in (*loads, last) for value in each.values):
        return nodes
    return (*loads, last.replace(nodes=(*before, *last.body)))


def whole_rows_loop(nodes: tuple[ir.Node, ...], points: ir.Loop, rows: int) -> ir.Loop | None:
    """A loop over the rows of a program of whole tiles, of so many rows; None if they differ.

    Parameters
    ----------
    nodes : tuple of Node
        Those of a point: no loop of theirs is over rows.
    points : Loop
        The loop over points, whose place and index it has.
    rows : int
    """
    loop = ir.Loop((), (), points.span, "metapipe", points.index, rows, None, None, (), nodes, ())
    return loop if _is_alike(loop) else None


def without_single_blocks(nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
    """The nodes with the bodies of loops over blocks of one element in their place."""
    found: list[ir.Node] = []
    for node in nodes:
        once = isinstance(node, ir.Loop) and node.blocks and node.extent == 1
        if not isinstance(node, ir.Loop) or not once or node.carries or node.until is not None:
            found.append(node)
            continue
        values = {node.index: Affine(), size_symbol(node.index): Affine((), 1)}

        def change(item: Any, values: Mapping[str, Affine] = values) -> Any:
            if not isinstance(item, Affine | Axis | Bound):
                return item
            item = item.substitute(values)
            if isinstance(item, Axis):
                size = Affine.of(item.size)
                rests = (rest for rest in item.rests if rest != size)
                item = Axis(item.size, tuple(rests))
            return item

        found += rebuild(node.body, change)
    return tuple(found)


def cut_tensors(loop: ir.Loop) -> frozenset[str]:
    """Tensors of which the loop over blocks of rows loads or stores a block of rows."""
    views = (node.view for node in walk(loop.body) if isinstance(node, ir.Load | ir.Store))
    index = Affine.of(loop.index)
    return frozenset(each.tensor for each in views if each.entries[0].start == index)


def right_operands(nodes: tuple[ir.Node, ...]) -> set[str]:
    """Tensors of loaded tiles whose rows are no rows of a product that takes them."""
    loads = {each.result.name: each for each in walk(nodes) if isinstance(each, ir.Load)}
    products = [each for each in walk(nodes) if isinstance(each, ir.Matmul)]
    taken = [each.values[1] for each in products] + [each.values[0] for each in products if each.ta]
    return {loads[each.name].view.tensor for each in taken if each.name in loads}


def joined_rows(
    nodes: tuple[ir.Node, ...], loop: ir.Loop, points: int, tensors: Mapping[str, Tensor]
) -> tuple[ir.Node, ...] | None:
    """Nodes with one loop over blocks of rows, of the rows of all points.

    Parameters
    ----------
    nodes : tuple of Node
    loop : Loop
        Of `row_loop` of these nodes.
    points : int
        Number of points.
    tensors : mapping of str to Tensor
        Those that have a row for each row of all points, with as many rows. Of one that the loop
        does not cut, a point takes all rows as a tile, or one row, which becomes a block of equal
        ones.

    Returns
    -------
    tuple of Node or None
        None if the loop cuts another tensor, or takes one of these in another way.
    """
    index, cut = Affine.of(loop.index), cut_tensors(loop)
    views = [node.view for node in walk(nodes) if isinstance(node, ir.Load | ir.Store)]
    stored = {node.view.tensor for node in walk(nodes) if isinstance(node, ir.Store)}
    if (cut | stored) - tensors.keys() or any(
        each.tensor in cut and each.entries[0].start != index for each in views
    ):
        return None
    whole = tensors.keys() - cut
    if whole:
        wider = _with_rows(nodes, loop, whole, tensors)
        if wider is None:
            return None
        nodes, loop = wider
    return with_longer_loop(nodes, loop, points)


def _with_rows(
    nodes: tuple[ir.Node, ...],
    loop: ir.Loop,
    whole: Collection[str],
    tensors: Mapping[str, Tensor],
) -> tuple[tuple[ir.Node, ...], ir.Loop] | None:
    """Nodes whose loop cuts the rows of tensors of which it took whole tiles, and that loop."""
    rows = Entry(Affine.of(loop.index), whole_block(loop))
    tiles = WholeTiles(nodes, 0, loop.extent, rows, dict.fromkeys(whole, 0), tensors)
    before = [each for each in nodes if tiles.is_whole(each)]
    try:
        wide = loop.replace(nodes=tiles.block((*before, *loop.body)))
    except RuleError:
        return None
    rest = (each for each in nodes if not any(each is other for other in before))
    return tuple(wide if each is loop else each for each in rest), wide


def _is_alike(loop: ir.Loop) -> bool:
    """Whether the body computes each row alike."""
    return all(_by_rows(node, loop) for node in walk(loop.body))


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
    if isinstance(node, ir.Iota):
        number = node.rows.one and not node.start.terms
        return number or (node.axis == 1 and loop.index not in node.start.symbols)
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
