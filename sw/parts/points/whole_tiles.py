"""Whole tiles of a point, and what is made of them, with the rows or columns of all points."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeGuard

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.format_rules import int32
from sw.ir.infer import RuleError, infer
from sw.ir.rewrite import map_operands, unused, walk
from sw.ir.types import Entry, Tensor, TileType, View

__all__ = ["WholeTiles"]


class WholeTiles:
    """The change of tiles that are all rows or columns of a point to those of all points.

    Parameters
    ----------
    nodes : tuple of Node
    axis : int
        0 for rows, 1 for columns.
    size : int
        Rows or columns of a point.
    entry : Entry
        Those that take their place: a block of all rows, or all columns.
    places : mapping of str to int
        Tensors of which a point takes all of them, and their axis in views: 0 or -1.
    tensors : mapping of str to Tensor
        All that have those of all points.
    """

    def __init__(
        self,
        nodes: tuple[ir.Node, ...],
        axis: int,
        size: int,
        entry: Entry,
        places: Mapping[str, int],
        tensors: Mapping[str, Tensor],
    ) -> None:
        assert entry.axis is not None
        self._axis, self._own, self._entry, self._wide = axis, Axis(size), entry, entry.axis
        self._places, self._tensors = places, tensors
        self._makers = {each.name: node for node in walk(nodes) for each in node.results}
        self._names = {
            *self._makers,
            *(each.name for node in walk(nodes) for each in getattr(node, "carries", ())),
        }
        self._changed: dict[str, ir.Value] = {}

    def is_whole(self, node: ir.Node) -> TypeGuard[ir.Load | ir.Store]:
        """Whether a node loads or stores such a tile."""
        return isinstance(node, ir.Load | ir.Store) and node.view.tensor in self._places

    def block(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """The nodes with the rows or columns of all points.

        Raises
        ------
        RuleError
            If one does not compute each row or column alike.
        """
        return tuple(each for node in nodes for each in self._node(node))

    def _node(self, node: ir.Node) -> tuple[ir.Node, ...]:
        if isinstance(node, ir.Loop):
            return self._inner(node)
        if self._axis == 0 and isinstance(node, ir.Iota) and node.rows.one and node.axis == 0:
            # The number of a point's only row, for the rows of all points.
            number = ir.Constant(node.start.constant)
            return (ir.Full((), node.results, node.span, number, node.rows, node.cols, int32),)
        if self.is_whole(node):
            node = node.replace(view=self._view(node.view))
        elif not any(each.name in self._changed for each in node.values):
            return (node,)
        elif not self._keeps(node):
            raise RuleError("operation", f"`{node.kind}` is not of each row or column")
        node = map_operands(node, self._now)
        results = tuple(
            ir.Value(each.name, kind)
            for each, kind in zip(node.results, infer(node, self._tensors), strict=True)
        )
        self._note(node.results, results)
        return (node.replace(results=results),)

    def _inner(self, loop: ir.Loop) -> tuple[ir.Node, ...]:
        """A loop in the body; its carries of as many rows or columns as a point become wider."""
        if not any(
            self.is_whole(node) or any(each.name in self._changed for each in node.values)
            for node in walk((loop,))
        ):
            return (loop,)
        made: list[ir.Node] = []
        starts, carries = [*loop.operands], [*loop.carries]
        for number, carry in enumerate(loop.carries):
            if isinstance(carry.type, TileType) and carry.type.axis(self._axis) == self._own:
                start = starts[number] = self._start(loop.operands[number], made)
                carries[number] = ir.Value(carry.name, start.type)
        self._note(loop.carries, carries)
        body = self.block(loop.body)
        nexts = tuple(self._changed.get(each.name, each) for each in loop.nexts)
        if any(each.type != carry.type for each, carry in zip(nexts, carries, strict=True)):
            raise RuleError("shape", "a carried tile that keeps its size")
        results = tuple(
            ir.Value(each.name, carry.type)
            for each, carry in zip(loop.results, carries, strict=True)
        )
        self._note(loop.results, results)
        loop = loop.replace(
            operands=tuple(starts),
            results=results,
            carries=tuple(carries),
            nodes=body,
            nexts=nexts,
        )
        return (*made, loop)

    def _start(self, start: ir.Operand, made: list[ir.Node]) -> ir.Value:
        """The wider start of a carry, whose new nodes are added to a list."""
        now = self._now(start)
        if now is not start:
            assert isinstance(now, ir.Value)
            return now
        maker = self._makers.get(start.name) if isinstance(start, ir.Value) else None
        if isinstance(maker, ir.Full):
            node: ir.Node = maker.replace(**{("rows", "cols")[self._axis]: self._wide})
        elif isinstance(maker, ir.Cast):
            node = maker.replace(operands=(self._start(maker.operands[0], made),))
        else:
            raise RuleError("operation", "a carried tile that is no constant at first")
        (kind,) = infer(node, self._tensors)
        result = ir.Value(unused(maker.result.name, self._names), kind)
        self._names.add(result.name)
        made.append(node.replace(results=(result,)))
        return result

    def _now(self, operand: ir.Operand) -> ir.Operand:
        return (
            self._changed.get(operand.name, operand) if isinstance(operand, ir.Value) else operand
        )

    def _note(self, old: Collection[ir.Value], new: Collection[ir.Value]) -> None:
        self._changed |= {
            each.name: each for former, each in zip(old, new, strict=True) if each != former
        }

    def _view(self, view: View) -> View:
        """The view of those of all points; a point of one row may have it without an entry."""
        if self._axis == 0:
            if any(each.start.symbols for each in view.entries[:-1]):
                raise RuleError("view", f"`{view}` is not of all rows")
            return View(view.tensor, (self._entry, view.entries[-1]))
        entries = [*view.entries]
        place = self._places[view.tensor]
        if entries[place] != Entry(Affine(), self._own):
            raise RuleError("view", f"`{view}` is not of all columns")
        entries[place] = self._entry
        return View(view.tensor, tuple(entries))

    def _keeps(self, node: ir.Node) -> bool:
        """Whether a node computes a row or column as it does that of a point, or its only one."""
        if isinstance(node, ir.Matmul):
            changed = [each.name in self._changed for each in node.values[:2]]
            return changed == [self._axis == 0, self._axis == 1] and not (
                self._axis == 0 and node.ta
            )
        if isinstance(node, ir.Reduce):
            return node.axis != self._axis
        kinds = ir.Cast | ir.Map | ir.Store
        return isinstance(node, kinds | ir.Powers | ir.Rescale if self._axis == 0 else kinds)
