"""Tiles that are element math, pieces or joins of one another, and where their columns begin."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Iterator, Mapping

from hw.arch.descriptor import BASE_ALIGNMENT
from sw.ir import nodes as ir
from sw.ir.affine import Affine
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType

__all__ = [
    "ColumnGroup",
    "column_groups",
    "is_misplaced",
    "is_vector",
    "joined_columns",
    "point_indices",
    "tile",
    "turned",
]

#: What makes a tile of a group of others.
_MATH = ir.Map | ir.Cast | ir.Buffer | ir.Columns | ir.Join


@dataclasses.dataclass(frozen=True)
class ColumnGroup:
    """Tiles that are element math, pieces or joins of one another.

    Parameters
    ----------
    bits : int
        Fewest of an element, in the tensors that they are loaded from and stored to as well.
    elements : bool
        Whether they are made of loaded tiles and constants, and nothing else is made of them. Only
        vectors may be otherwise.
    misplaced : bool
        Whether some of their columns begin where no transfer can.
    """

    bits: int
    elements: bool
    misplaced: bool

    @property
    def is_turned(self) -> bool:
        """Whether all of them may be computed as transposed tiles."""
        return self.elements and self.misplaced


def is_misplaced(first: Affine, bits: int, points: Collection[str]) -> bool:
    """Whether columns from this one on begin at no multiple of `BASE_ALIGNMENT`, for any point."""
    steps = (factor for symbol, factor in first.terms if symbol in points)
    return any(each * bits % (8 * BASE_ALIGNMENT) for each in (first.constant, *steps))


def point_indices(program: Program) -> frozenset[str]:
    """Indices of the loops over points."""
    loops = (each for each in walk(program.nodes) if isinstance(each, ir.Loop))
    return frozenset(each.index for each in loops if not each.blocks)


def column_groups(program: Program) -> Mapping[str, ColumnGroup]:
    """The group of each tile of a program, by the tile's name."""
    every = list(walk(program.nodes))
    points = point_indices(program)
    above: dict[str, str] = {}

    def first(name: str) -> str:
        while above.setdefault(name, name) != name:
            name = above[name]
        return name

    for node in every:
        for value in _beside(node):
            above[first(value.name)] = first(node.result.name)
    nodes = collections.defaultdict(list)
    for node in every:
        if not isinstance(node, ir.Loop):
            tiles = (each for each in (*node.results, *node.values) if _is_tile(each))
            for name in dict.fromkeys(first(each.name) for each in tiles):
                nodes[name].append(node)
    members = collections.defaultdict(set)
    for each in [*above]:
        members[first(each)].add(each)
    found: dict[str, ColumnGroup] = {}
    others = {
        value.name
        for node in every
        if isinstance(node, ir.Loop)
        for value in (*node.results, *node.carries, *node.operands, *node.nexts)
        if isinstance(value, ir.Value)
    }
    for name, own in nodes.items():
        group = _group(program, own, members[name], points, others)
        found |= dict.fromkeys(members[name], group)
    return found


def _group(
    program: Program,
    nodes: list[ir.Node],
    members: Collection[str],
    points: Collection[str],
    carried: Collection[str],
) -> ColumnGroup:
    """The group of some tiles, which these nodes make or take."""
    accessed = [each for each in nodes if isinstance(each, ir.Load | ir.Store)]
    bits = [program.tensor(each.view.tensor).type.format.bits for each in accessed]
    matrices = []
    for node in nodes:
        for value in (*node.results, *node.values):
            if _is_tile(value) and value.name in members:
                bits.append(tile(value).format.bits)
                if not is_vector(value):
                    matrices.append((node, value))
    least = min(each for each in bits if each > 1)
    elements = all(
        isinstance(node, ir.Load | ir.Full | ir.Iota | _MATH if value in node.results else _TAKEN)
        and value.name not in carried
        for node, value in matrices
    )
    starts = (first for node in nodes for first in _starts(node))
    misplaced = any(is_misplaced(each, least, points) for each in starts)
    return ColumnGroup(least, elements, misplaced)


#: What takes a tile of a group.
_TAKEN = ir.Store | _MATH


def _beside(node: ir.Node) -> Iterator[ir.Value]:
    """Operands of a node that are in the group of its result."""
    if isinstance(node, ir.Columns | ir.Join):
        yield from node.values
    elif isinstance(node, _MATH):
        kind = tile(node.result)
        yield from (each for each in node.values if tile(each).cols == kind.cols)


def _starts(node: ir.Node) -> Iterator[Affine]:
    """Columns from which on a node accesses a tensor, takes some of a tile or joins tiles."""
    if isinstance(node, ir.Columns):
        yield node.first
    elif isinstance(node, ir.Join):
        yield from joined_columns(node)
    elif isinstance(node, ir.Load | ir.Store) and node.view.entries[-1].axis is not None:
        yield node.view.entries[-1].start


def joined_columns(node: ir.Join) -> Iterator[Affine]:
    """First columns of the tiles that are joined."""
    first = 0
    for each in node.values:
        yield Affine((), first)
        first += int(tile(each).cols.size)


def tile(value: ir.Value) -> TileType:
    """Type of a tile."""
    assert isinstance(value.type, TileType)
    return value.type


def turned(kind: TileType) -> TileType:
    """Type of the transpose."""
    return TileType(kind.cols, kind.rows, kind.format)


def _is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, TileType)


def is_vector(value: ir.Value) -> bool:
    """Whether a tile has one row or one column."""
    return tile(value).rows.one or tile(value).cols.one
