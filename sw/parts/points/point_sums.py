"""Sums of products over points: loops that add one product in each iteration are one product.

Terms are added in ascending order, iteration by iteration. So where the blocks of both operands
follow one another in memory, the sum is that of one product of joined tiles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.types import TileType

__all__ = ["JoinedLoad", "PointSum", "point_sum"]


@dataclasses.dataclass(frozen=True)
class JoinedLoad:
    """A load of the tiles of all iterations, joined along one axis.

    Parameters
    ----------
    loops : tuple of Loop
        The loops over points, outer before inner.
    axis : int
        0 if rows of the tiles follow one another, 1 if columns do.
    """

    loops: tuple[ir.Loop, ...]
    axis: int


@dataclasses.dataclass(frozen=True)
class PointSum:
    """Loops over points that add one product in each iteration.

    Parameters
    ----------
    loads : tuple of Load
        Those of the operands, with joined tiles as results and the views of one iteration.
    joined : tuple of JoinedLoad
        How each is joined.
    product : Matmul
        The product of the joined tiles, added to the start; its result is that of the loops.
    """

    loads: tuple[ir.Load, ...]
    joined: tuple[JoinedLoad, ...]
    product: ir.Matmul


def point_sum(loop: ir.Loop, outside: Mapping[str, ir.Load]) -> PointSum | None:
    """Recognise loops over points, each around the next, as the sum of one product.

    Parameters
    ----------
    loop : Loop
        The outermost one.
    outside : mapping of str to Load
        Loads of constant tensors, by the names of their tiles: an iteration may load again what is
        loaded outside of it.

    Returns
    -------
    PointSum or None
        None if the loops do anything else.
    """
    loops: list[ir.Loop] = []
    loads = dict(outside)
    start = loop.operands[:1]
    node: ir.Loop | ir.Matmul = loop
    while isinstance(node, ir.Loop):
        if node.blocks or node.until is not None or len(node.carries) != 1:
            return None
        if loops and (node.operands != loops[-1].carries or loops[-1].nexts != node.results):
            return None
        loops.append(node)
        loads |= {each.result.name: each for each in node.body if isinstance(each, ir.Load)}
        others = [each for each in node.body if not isinstance(each, ir.Load)]
        inner = others[0] if len(others) == 1 else None
        if not isinstance(inner, ir.Loop | ir.Matmul):
            return None
        node = inner
    if node.operands[2:] != loops[-1].carries or loops[-1].nexts != node.results:
        return None
    taken = [*zip(node.values[:2], (int(not node.ta), int(node.tb)))]
    # A tile may be both operands, joined along one axis or along each.
    found: dict[tuple[ir.Value, int], ir.Load] = {}
    for operand, axis in dict.fromkeys(taken):
        load, tile = loads.get(operand.name), _joined(operand, axis, loops)
        if load is None or tile is None:
            return None
        found[operand, axis] = load.replace(results=(tile,))
    joined = tuple(JoinedLoad(tuple(loops), axis) for _, axis in found)
    operands = (*(found[each].result for each in taken), *start)
    product = node.replace(operands=operands, results=loop.results)
    return PointSum(tuple(found.values()), joined, product)


def _joined(value: ir.Value, axis: int, loops: Sequence[ir.Loop]) -> ir.Value | None:
    """The tiles of all iterations as one; None if their number of terms is not fixed."""
    kind = value.type
    assert isinstance(kind, TileType)
    size = kind.axis(axis).size
    if isinstance(size, str) or not kind.axis(axis).full:
        return None
    for loop in loops:
        size *= loop.extent
    whole = Axis(size)
    rows, cols = (kind.rows, whole) if axis else (whole, kind.cols)
    name = f"{value.name}.{loops[0].index}.{'columns' if axis else 'rows'}"
    return ir.Value(name, TileType(rows, cols, kind.format))
