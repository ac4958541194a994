"""Transposed tensors, of which rows are accessed in place of columns.

Each row of a tensor begins at a multiple of 16 bytes, and so a transfer can begin there. Tensors of
tiles that are element math of one another are all transposed, so that no tile is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused, walk
from sw.ir.types import Dim, Entry, Role, Space, Span, Tensor, TensorType, TileType, View
from sw.parts.forms.column_groups import ColumnGroup, is_misplaced, tile, turned

__all__ = ["with_turned_tensors"]

_Nodes = tuple[ir.Node, ...]


def with_turned_tensors(program: Program, groups: Mapping[str, ColumnGroup]) -> Program:
    """The program that accesses transposed tensors; itself if it has none to access.

    Parameters
    ----------
    program : Program
    groups : mapping of str to ColumnGroup
        Those of its tiles; not of all, where it loads some from other tensors already.
    """
    tensors = _TurnedTensors(program, groups)
    return tensors.program() if tensors.turned else program


class _TurnedTensors:
    """Tensors of the program that have a transposed one.

    Members
    -------
    turned : dict of (str, bool) to Tensor
        The transposed tensors, by the names of those that they stand for, and by whether they have
        each row as a matrix of one column: a vector of its elements is accessed.
    """

    def __init__(self, program: Program, groups: Mapping[str, ColumnGroup]) -> None:
        self._program = program
        self._names = Names(program)
        self._groups = groups
        every = list(walk(program.nodes))
        self._indices = {each.index for each in every if isinstance(each, ir.Loop)}
        self._points = {e.index for e in every if isinstance(e, ir.Loop) and not e.blocks}
        names = {each.name for each in program.tensors}
        self.turned: dict[tuple[str, bool], Tensor] = {}
        for tensor in program.tensors:
            for vectors in self._needed(tensor, _accesses(every, tensor.name)):
                *outer, columns = tensor.type.dims
                if vectors:
                    dims = (*outer, columns, Dim("1", 1))
                else:
                    dims = (*outer[:-1], columns, outer[-1])
                name = unused(f"{tensor.name}.columns", names)
                names.add(name)
                kind = TensorType(dims, tensor.type.format, Space.MEMORY, Role.LOCAL)
                self.turned[tensor.name, vectors] = Tensor(name, kind)

    def _needed(self, tensor: Tensor, accesses: list[ir.Load | ir.Store]) -> set[bool]:
        """For vectors, for matrices, or for neither, if not all that must be may be others."""
        kind = tensor.type
        apart = [each for each in accesses if self._is_apart(each)]
        if not apart or kind.role is Role.INOUT or kind.space is not Space.MEMORY:
            return set()
        if kind.role is Role.IN:
            return {_is_vector(each.view) for each in apart}
        return set() if any(_is_vector(each.view) for each in accesses) else {False}

    def _is_apart(self, node: ir.Load | ir.Store) -> bool:
        """Whether an access begins where none can, or is one of a tile that is transposed."""
        bits = self._program.tensor(node.view.tensor).type.format.bits
        (value,) = node.results or node.values
        whole = not tile(value).rows.one and not tile(value).cols.one
        group = self._groups.get(value.name)
        in_turned = whole and group is not None and group.is_turned
        return in_turned or is_misplaced(node.view.entries[-1].start, bits, self._points)

    def _stays(self, node: ir.Load | ir.Store) -> bool:
        """Whether an access to an input may be as it is: pieces of its columns are all rows."""
        last = node.view.entries[-1]
        whole = last.axis is None or last.axis.size == self._columns(node.view.tensor)
        return whole and not self._is_apart(node)

    def _columns(self, name: str) -> int:
        return self._program.tensor(name).type.shape[-1]

    def program(self) -> Program:
        """The program that accesses the transposed tensors.

        Those of inputs are stored first, and outputs are stored from theirs at the end.
        """
        first: list[ir.Node] = []
        last: list[ir.Node] = []
        nodes = tuple(self._block(self._program.nodes))
        tensors = []
        for each in self._program.tensors:
            others = [self.turned[key] for key in self.turned if key[0] == each.name]
            tensors += others
            if each.type.role is not Role.LOCAL or not others:
                tensors.append(each)
            for other in others:
                if each.type.role is Role.IN:
                    first += self._copy(each, other)
                elif each.type.role is Role.OUT:
                    last += self._copy(other, each)
        return dataclasses.replace(
            self._program, tensors=tuple(tensors), nodes=(*first, *nodes, *last)
        )

    def _copy(self, source: Tensor, target: Tensor) -> _Nodes:
        """Nodes that store the transposes of the matrices, or rows, of one tensor in another."""
        sizes = source.type.shape
        vectors = len(target.type.shape) > len(sizes)
        outer, kept = (sizes[:-1], (1, sizes[-1])) if vectors else (sizes[:-2], sizes[-2:])
        points = []
        for _ in outer:
            points.append(unused("turned", self._indices))
            self._indices.add(points[-1])
        starts = [Entry(Affine.of(each)) for each in points]
        rows, columns = (Entry(Affine(), Axis(each)) for each in kept)
        kind = TileType(Axis(kept[0]), Axis(kept[1]), source.type.format)
        span = self._span(source, target)
        read = self._names.fresh(ir.Value("turned", kind))
        made = self._names.fresh(ir.Value("turned", turned(kind)))
        entries = (*starts, columns) if vectors else (*starts, rows, columns)
        nodes: _Nodes = (
            ir.Load((), (read,), span, View(source.name, entries)),
            ir.Transpose((read,), (made,), span),
            ir.Store((made,), (), span, View(target.name, (*starts, columns, rows))),
        )
        for index, size in reversed([*zip(points, outer, strict=True)]):
            nodes = (ir.Loop((), (), span, "each", index, size, None, None, (), nodes, ()),)
        return nodes

    def _span(self, *tensors: Tensor) -> Span | None:
        """The place in the source of the first access to one of these that is another now."""
        names = {each.name for each in tensors}
        return next(
            node.span
            for node in walk(self._program.nodes)
            if isinstance(node, ir.Load | ir.Store)
            and node.view.tensor in names
            and self._is_apart(node)
        )

    def _block(self, nodes: _Nodes) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(self._block(node.body)))
            if not isinstance(node, ir.Load | ir.Store):
                yield node
                continue
            found = self.turned.get((node.view.tensor, _is_vector(node.view)))
            role = self._program.tensor(node.view.tensor).type.role
            if found is None or (role is Role.IN and self._stays(node)):
                yield node
                continue
            if _is_vector(node.view):
                view = View(found.name, (*node.view.entries, Entry(Affine(), Axis(1))))
            else:
                *outer, rows, columns = node.view.entries
                view = View(found.name, (*outer, columns, rows))
            (value,) = node.results or node.values
            other = self._names.fresh(value, turned(tile(value)))
            if isinstance(node, ir.Load):
                yield node.replace(results=(other,), view=view)
                yield ir.Transpose((other,), (value,), node.span)
            else:
                yield ir.Transpose((value,), (other,), node.span)
                yield node.replace(operands=(other,), view=view)


def _accesses(nodes: list[ir.Node], name: str) -> list[ir.Load | ir.Store]:
    """Loads and stores of a tensor; none if it is gathered or scattered."""
    found = []
    for node in nodes:
        view = getattr(node, "view", None)
        if isinstance(view, View) and view.tensor == name:
            if not isinstance(node, ir.Load | ir.Store):
                return []
            found.append(node)
    return found


def _is_vector(view: View) -> bool:
    """Whether a view has one row, by an entry or because its tensor has no rows."""
    return len(view.entries) < 2 or view.entries[-2].axis is None
