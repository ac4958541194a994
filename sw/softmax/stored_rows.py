"""Keys and values that a program computes, stored to local tensors before a softmax takes them.

The loop over blocks of keys loads its blocks (`sw.softmax.whole_rows`), so computed rows must be in
memory first. That is where parts of a kernel pass them anyway.
"""

from __future__ import annotations

import dataclasses

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused
from sw.ir.types import Dim, Entry, Role, Space, Tensor, TensorType, TileType, View
from sw.softmax.row_softmax import row_softmax_of
from sw.softmax.running_softmax import SoftmaxFinder

__all__ = ["with_stored_rows"]


def with_stored_rows(program: Program) -> Program:
    """Store the computed keys and values of softmaxes of whole rows, and load them.

    Parameters
    ----------
    program : Program
        After `accumulate` and `simplify`.

    Returns
    -------
    Program
        The same one, if there are none that loops over points alone are around.
    """
    storing = _Storing(program)
    storing.find(program.nodes, ())
    if not storing.views:
        return program
    tensors = (*program.tensors, *storing.tensors)
    nodes = storing.rewritten(program.nodes)
    return dataclasses.replace(program, tensors=tensors).after("stored_rows", nodes)


class _Storing:
    def __init__(self, program: Program) -> None:
        self._finder = SoftmaxFinder(program)
        self._names = Names(program)
        self._taken = {each.name for each in program.tensors}
        #: Loops around each value's node.
        self._around: dict[str, tuple[ir.Loop, ...]] = {}
        #: Where each value that is stored lies, by its name.
        self.views: dict[str, View] = {}
        self.tensors: list[Tensor] = []
        #: Values that a product takes from memory, by the name of its result.
        self._loaded: dict[str, str] = {}

    def find(self, nodes: tuple[ir.Node, ...], loops: tuple[ir.Loop, ...]) -> None:
        """Find the softmaxes of a block, inside some loops, and what they are to load."""
        for node in nodes:
            self._around.update((each.name, loops) for each in node.results)
            if isinstance(node, ir.Loop):
                self.find(node.body, (*loops, node))
            softmax = row_softmax_of(node, self._finder, nodes)
            for product in (softmax.product, softmax.sums) if softmax else ():
                value = product.operands[1]
                if isinstance(value, ir.Value) and self._is_stored(value):
                    self._loaded[product.result.name] = value.name

    def _is_stored(self, value: ir.Value) -> bool:
        """Whether a value can be stored; it has a tensor then."""
        node = self._finder.maker(value)
        while isinstance(node, ir.Buffer):
            node = self._finder.maker(node.operands[0])
        loops, kind = self._around.get(value.name, ()), value.type
        points = all(each.mode == "each" and each.until is None for each in loops)
        if node is None or isinstance(node, ir.Load) or not points:
            return False
        assert isinstance(kind, TileType)
        if not all(isinstance(each.size, int) and each.full for each in (kind.rows, kind.cols)):
            return False
        if value.name not in self.views:
            self.views[value.name] = self._view(value, kind, loops)
        return True

    def _view(self, value: ir.Value, kind: TileType, loops: tuple[ir.Loop, ...]) -> View:
        """Place of a value's tile in a new tensor, which has one for each point of the loops."""
        name = unused(value.variable or "rows", self._taken)
        self._taken.add(name)
        sizes = [each.extent for each in loops] + [_size(kind.rows), _size(kind.cols)]
        dims = tuple(Dim(f"{name}.{axis}", size) for axis, size in enumerate(sizes))
        type_ = TensorType(dims, kind.format, Space.MEMORY, Role.LOCAL)
        self.tensors.append(Tensor(name, type_))
        entries = [Entry(Affine.of(each.index)) for each in loops]
        return View(name, (*entries, Entry(Affine(), kind.rows), Entry(Affine(), kind.cols)))

    def rewritten(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """Nodes that store what they make, and products that load."""
        found: list[ir.Node] = []
        for node in nodes:
            if node.body:
                node = node.replace(nodes=self.rewritten(node.body))
            name = self._loaded.get(node.result.name) if node.results else None
            if name is not None:
                value = node.operands[1]
                assert isinstance(value, ir.Value)
                load = ir.Load((), (self._names.fresh(value),), node.span, self.views[name])
                found.append(load)
                node = node.replace(operands=(node.operands[0], load.result))
            found.append(node)
            for each in node.results:
                if each.name in self.views:
                    found.append(ir.Store((each,), (), node.span, self.views[each.name]))
        return tuple(found)


def _size(axis: Axis) -> int:
    assert isinstance(axis.size, int)
    return axis.size
