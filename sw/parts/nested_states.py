"""Loops over points around one that carries tiles, turned inside out.

The iterations of a loop that carries tiles are launches, and points around it, such as heads or
sequences, would each have launches of their own. If the points do not depend on one another, the
carrying loop goes outside, and each of its iterations computes all points. Their tiles lie one
below another in a tensor:

    for h: for c: s = f(s, h, c)   →   for h: S[h] = start;  for c: for h: S[h] = f(S[h], h, c)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.format_rules import pred
from sw.ir.rewrite import used, walk
from sw.ir.types import Entry, Tensor, TileType, View

__all__ = ["NestedStates", "nested_states"]


@dataclass(frozen=True)
class NestedStates:
    """Loops over points around a loop that carries tiles.

    Parameters
    ----------
    points : tuple of Loop
        Loops over points, outermost first, each around the next.
    loop : Loop
        The carrying loop, in the last of them.
    """

    points: tuple[ir.Loop, ...]
    loop: ir.Loop

    @property
    def count(self) -> int:
        """Points in all."""
        return math.prod(each.extent for each in self.points)

    def starts(
        self, tensors: Sequence[Tensor], outside: Mapping[str, ir.Node]
    ) -> tuple[ir.Node, ...]:
        """Nodes that store the starts of all points, and what stands before the carrying loop.

        Parameters
        ----------
        tensors : sequence of Tensor
            For each carry.
        outside : mapping of str to Node
            Makers of values from outside the points, by the values' names.
        """
        before = {each.name: node for node in self._before() for each in node.results}
        nodes, inside = list[ir.Node](), list[ir.Node]()
        for start, tensor in zip(self.loop.values, tensors):
            maker = before.get(start.name) or outside.get(start.name)
            if isinstance(maker, ir.Full):
                nodes += self._full(maker, tensor)
            else:
                inside.append(self._store(start, tensor))
        if inside or any(isinstance(each, ir.Store) for each in walk(self._before())):
            nodes.append(self._around(inside, stores=True))
        return tuple(nodes)

    def _full(self, maker: ir.Full, tensor: Tensor) -> tuple[ir.Node, ir.Node]:
        """One number in all rows of a tensor."""
        rows, cols = tensor.whole.axes
        value = ir.Value(f"{tensor.name}.starts", TileType(rows, cols, maker.format))
        return (
            maker.replace(results=(value,), rows=rows, cols=cols),
            ir.Store((value,), (), maker.span, tensor.whole),
        )

    def iteration(self, taken: Sequence[Tensor], given: Sequence[Tensor]) -> ir.Loop:
        """The carrying loop, which carries nothing any more, around the loops over points."""
        loads = [self._load(*each) for each in zip(self.loop.carries, taken)]
        stores = [self._store(*each) for each in zip(self.loop.nexts, given)]
        inside = self._around([*loads, *self.loop.body, *stores])
        outside = self.loop.replace(operands=(), results=(), carries=(), nexts=(), nodes=(inside,))
        assert isinstance(outside, ir.Loop)
        return outside

    def ends(self, tensors: Sequence[Tensor]) -> ir.Node:
        """Loop of what stands behind the carrying loop, whose results are loaded."""
        loads = [self._load(*each) for each in zip(self.loop.results, tensors)]
        return self._around(loads, behind=True)

    @property
    def stores_behind(self) -> bool:
        """Whether anything is stored behind the carrying loop."""
        return any(isinstance(each, ir.Store) for each in walk(self._behind()))

    def _levels(self) -> list[tuple[ir.Loop, int]]:
        """Loops over points, and the place of the loop inside in the body of each."""
        inner = (*self.points[1:], self.loop)
        return [(each, each.body.index(inside)) for each, inside in zip(self.points, inner)]

    def _before(self) -> Iterator[ir.Node]:
        for loop, place in self._levels():
            yield from loop.body[:place]

    def _behind(self) -> Iterator[ir.Node]:
        for loop, place in self._levels():
            yield from loop.body[place + 1 :]

    def _around(
        self, inside: Sequence[ir.Node], *, stores: bool = False, behind: bool = False
    ) -> ir.Node:
        """The loops over points with other nodes in the place of the carrying loop."""
        nodes = tuple(inside)
        for loop, place in reversed(self._levels()):
            before = loop.body[:place] if stores else _without_stores(loop.body[:place])
            later = loop.body[place + 1 :] if behind else ()
            nodes = (loop.replace(mode="each", nodes=(*before, *nodes, *later)),)
        (found,) = nodes
        return found

    def _load(self, value: ir.Value, tensor: Tensor) -> ir.Load:
        return ir.Load((), (value,), self.loop.span, self._view(tensor, value))

    def _store(self, value: ir.Value, tensor: Tensor) -> ir.Store:
        return ir.Store((value,), (), self.loop.span, self._view(tensor, value))

    def _view(self, tensor: Tensor, value: ir.Value) -> View:
        """Rows of a point."""
        assert isinstance(value.type, TileType)
        first = Affine()
        for each in self.points:
            first = first * each.extent + Affine.of(each.index)
        first = first * int(value.type.rows.size)
        return View(tensor.name, (Entry(first, value.type.rows), Entry(Affine(), value.type.cols)))


def nested_states(outer: ir.Loop) -> NestedStates | None:
    """Return the loops that may be turned inside out; None if there are none.

    Parameters
    ----------
    outer : Loop
        A loop whose iterations are launches.
    """
    points = [outer]
    while True:
        loop = points[-1]
        if loop.carries or loop.blocks or loop.until is not None:
            return None
        inner = [each for each in loop.body if _has_launches(each)]
        if len(inner) != 1 or not isinstance(inner[0], ir.Loop):
            return None
        if inner[0].carries:
            break
        points.append(inner[0])
    found = NestedStates(tuple(points), inner[0])
    return found if _is_free(found) else None


def _has_launches(node: ir.Node) -> bool:
    return any(isinstance(each, ir.Loop) and each.mode == "repeat" for each in walk((node,)))


def _is_free(nest: NestedStates) -> bool:
    """Whether points do not depend on one another, and no iteration computes again for each."""
    loop, nodes = nest.loop, list(walk(nest.points[:1]))
    if loop.until is not None or any(map(_has_launches, loop.body)):
        return False
    if any(isinstance(each, ir.Scatter) for each in nodes):
        return False
    stored = {each.view.tensor for each in nodes if isinstance(each, ir.Store)}
    views = (getattr(each, "view", None) for each in nodes if not isinstance(each, ir.Store))
    if any(view is not None and view.tensor in stored for view in views):
        return False
    kinds = [each.type for each in loop.carries]
    if not all(isinstance(each, TileType) and _is_fixed(each) for each in kinds):
        return False
    wanted = {each.name for node in loop.body for each in used(node)}
    wanted |= {each.name for each in loop.nexts}
    for level in reversed(nest.points):
        for node in reversed(level.body):
            if wanted.isdisjoint(each.name for each in node.results):
                continue
            if isinstance(node, ir.Matmul | ir.Map | ir.Reduce | ir.Loop):
                return False
            wanted |= {each.name for each in used(node)}
    return True


def _is_fixed(kind: TileType) -> bool:
    axes = kind.rows, kind.cols
    fixed = all(isinstance(each.size, int) and each == Axis(each.size) for each in axes)
    return fixed and kind.format != pred


def _without_stores(nodes: Iterable[ir.Node]) -> tuple[ir.Node, ...]:
    """Nodes without stores, at any depth."""
    return tuple(
        each.replace(nodes=_without_stores(each.body)) if isinstance(each, ir.Loop) else each
        for each in nodes
        if not isinstance(each, ir.Store)
    )
