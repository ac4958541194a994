"""Row numbers that a kernel computes: they are stored in a local tensor, and gathers load them.

A gather reads its numbers from a vector in memory. So numbers such as the code nearest to each row,
or those of a matrix of one column, are stored as such a vector first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hw.numeric.formats import int32
from sw.ir import nodes as ir
from sw.ir.affine import Affine
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused, walk
from sw.ir.types import Dim, Entry, Role, Space, Tensor, TensorType, TileType, View
from sw.ir.verify import verify

__all__ = ["with_stored_numbers"]


def with_stored_numbers(program: Program) -> Program:
    """Store the row numbers that gathers take from element math or a matrix, and load them.

    Numbers in a loop of `tw.repeat`, or of a block inside a block, stay as they are.

    Parameters
    ----------
    program : Program
        After `simplify`.
    """
    writer = _Writer(program)
    nodes = writer.block(program.nodes, ())
    if not writer.tensors:
        return program
    whole = dataclasses.replace(program, tensors=(*program.tensors, *writer.tensors))
    return verify(whole.after("stored_numbers", nodes))


class _Writer:
    def __init__(self, program: Program) -> None:
        self._names = Names(program)
        self._taken = {each.name for each in program.tensors}
        self._makers = {each.name: node for node in walk(program.nodes) for each in node.results}
        self.tensors: list[Tensor] = []

    def block(self, nodes: tuple[ir.Node, ...], loops: tuple[ir.Loop, ...]) -> tuple[ir.Node, ...]:
        """Nodes of a body, with what stores and loads numbers in front of each gather."""
        found = list[ir.Node]()
        for node in nodes:
            if isinstance(node, ir.Loop) and node.mode != "repeat":
                node = node.replace(nodes=self.block(node.body, (*loops, node)))
            if isinstance(node, ir.Gather) and self._is_computed(node.values[0]):
                numbers = node.values[0]
                entries = self._entries(numbers, loops)
                if entries is not None:
                    passed = self._passed(numbers, entries, node)
                    found += passed
                    node = node.replace(operands=(passed[-1].result, *node.operands[1:]))
            found.append(node)
        return tuple(found)

    def _is_computed(self, value: ir.Value) -> bool:
        maker = self._makers.get(value.name)
        while isinstance(maker, ir.Buffer | ir.Transpose):
            maker = self._makers.get(maker.values[0].name)
        if isinstance(maker, ir.Load):
            return sum(each.axis is not None for each in maker.view.entries) != 1
        return isinstance(maker, ir.Map | ir.Reduce | ir.Cast)

    def _entries(
        self, numbers: ir.Value, loops: Sequence[ir.Loop]
    ) -> list[tuple[Entry, int]] | None:
        """Place of numbers in the vectors of all points, with the size of each axis."""
        kind = numbers.type
        assert isinstance(kind, TileType)
        axis = kind.cols if kind.rows.one else kind.rows
        blocks = [each for each in loops if each.blocks]
        found = [(Entry(Affine.of(each.index)), each.extent) for each in loops if not each.blocks]
        if isinstance(axis.size, int):
            return None if blocks or axis.rests else [*found, (Entry(Affine(), axis), axis.size)]
        if len(blocks) != 1 or axis.start != Affine.of(blocks[0].index):
            return None
        return [*found, (Entry(axis.start, axis), blocks[0].extent)]

    def _passed(
        self, numbers: ir.Value, entries: Sequence[tuple[Entry, int]], near: ir.Node
    ) -> list[ir.Node]:
        """Nodes that store numbers as a row and load them."""
        kind = numbers.type
        assert isinstance(kind, TileType)
        name = unused(f"{numbers.variable or 'rows'}.numbers", self._taken)
        self._taken.add(name)
        dims = tuple(Dim(f"_{place}", size) for place, (_, size) in enumerate(entries))
        self.tensors.append(Tensor(name, TensorType(dims, int32, Space.MEMORY, Role.LOCAL)))
        view = View(name, tuple(entry for entry, _ in entries))
        found = list[ir.Node]()
        row = numbers
        if not kind.rows.one:
            row = self._names.fresh(numbers, TileType(kind.cols, kind.rows, kind.format))
            found.append(ir.Transpose((numbers,), (row,), near.span))
        found.append(ir.Store((row,), (), near.span, view))
        found.append(ir.Load((), (self._names.fresh(row),), near.span, view))
        return found
