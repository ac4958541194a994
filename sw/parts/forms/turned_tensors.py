"""Transposed tensors, of which rows are accessed in place of columns.

Each row of a tensor begins at a multiple of 16 bytes, and so a transfer can begin there. Tensors of
tiles that are element math of one another are all transposed, so that no tile is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, size_symbol
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused, walk
from sw.ir.types import Dim, Entry, Role, Space, Span, Tensor, TensorType, TileType, View
from sw.parts.forms.column_groups import (
    ColumnGroup,
    is_misplaced,
    is_vector,
    point_indices,
    tile,
    turned,
)

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


#: First row and number of rows of a tensor; None: each row, as a matrix of one column.
_Rows = tuple[int, int] | None


class _TurnedTensors:
    """Tensors of the program that have transposed ones.

    Members
    -------
    turned : dict of (str, (int, int) or None) to Tensor
        The transposed tensors, by the names of those that they stand for, and by their rows.
    """

    def __init__(self, program: Program, groups: Mapping[str, ColumnGroup]) -> None:
        self._program = program
        self._names = Names(program)
        self._groups = groups
        every = list(walk(program.nodes))
        loops = [each for each in every if isinstance(each, ir.Loop)]
        self._indices = {each.index for each in loops}
        self._points = point_indices(program)
        self._extents = {size_symbol(each.index): each.extent for each in loops}
        names = {each.name for each in program.tensors}
        self.turned: dict[tuple[str, _Rows], Tensor] = {}
        for tensor in program.tensors:
            for rows in sorted(self._needed(tensor, _accesses(every, tensor.name)), key=str):
                *outer, columns = tensor.type.dims
                if rows is None:
                    dims = (*outer, columns, Dim("1", 1))
                else:
                    dims = (*outer[:-1], columns, Dim(outer[-1].name, rows[1]))
                name = unused(f"{tensor.name}.columns", names)
                names.add(name)
                kind = TensorType(dims, tensor.type.format, Space.MEMORY, Role.LOCAL)
                self.turned[tensor.name, rows] = Tensor(name, kind)

    def _needed(self, tensor: Tensor, accesses: list[ir.Load | ir.Store]) -> set[_Rows]:
        """The rows that have a transposed tensor; none if not all that must may be others."""
        kind = tensor.type
        apart = [each for each in accesses if self._is_apart(each)]
        if not apart or kind.role is Role.INOUT or kind.space is not Space.MEMORY:
            return set()
        if kind.role is Role.IN:
            return {self._loaded(each) for each in accesses if not self._stays(each)}
        if any(_is_vector(each.view) for each in accesses):
            return set()
        if kind.role is Role.LOCAL or all(map(self._is_aligned, accesses)):
            return {(0, kind.shape[-2])}
        found = {self._stored(each) for each in apart}
        for rows in found:
            # They are transposed whole at the end.
            own = (each.view.entries[-1] for each in accesses if self._stored(each) == rows)
            if sum(map(self._count, own)) != kind.shape[-1]:
                return set()
        return {*found}

    def _rows(self, node: ir.Load | ir.Store) -> _Rows:
        """The rows of the transposed tensor that an access may have."""
        name, role = node.view.tensor, self._program.tensor(node.view.tensor).type.role
        if role is Role.IN or _is_vector(node.view):
            return self._loaded(node)
        whole = (0, self._program.tensor(name).type.shape[-2])
        return whole if (name, whole) in self.turned else self._stored(node)

    def _loaded(self, node: ir.Load | ir.Store) -> _Rows:
        """The rows from that on which a load begins with, if those from the first on do not do."""
        if _is_vector(node.view):
            return None
        first = 0 if self._is_aligned(node) else node.view.entries[-2].start.constant
        return first, self._program.tensor(node.view.tensor).type.shape[-2] - first

    def _stored(self, node: ir.Load | ir.Store) -> tuple[int, int]:
        """The rows that all iterations of a loop store."""
        rows = node.view.entries[-2]
        return rows.start.constant, self._count(rows)

    def _count(self, entry: Entry) -> int:
        """Elements that all iterations of a loop over blocks select."""
        size = entry.axis.size if entry.axis else 1
        return size if isinstance(size, int) else self._extents[size]

    def _is_aligned(self, node: ir.Load | ir.Store) -> bool:
        """Whether the rows of an access may be columns."""
        bits = self._program.tensor(node.view.tensor).type.format.bits
        start = 0 if _is_vector(node.view) else node.view.entries[-2].start.constant
        return not is_misplaced(Affine((), start), bits, ())

    def _is_apart(self, node: ir.Load | ir.Store) -> bool:
        """Whether an access begins where none can, or is one of a tile that is transposed.

        Elements of one column do not lie side by side either.
        """
        if _is_column(node.view):
            return True
        bits = self._program.tensor(node.view.tensor).type.format.bits
        (value,) = node.results or node.values
        group = self._groups.get(value.name)
        in_turned = not is_vector(value) and group is not None and group.is_turned
        return in_turned or is_misplaced(node.view.entries[-1].start, bits, self._points)

    def _stays(self, node: ir.Load | ir.Store) -> bool:
        """Whether an access to an input may be as it is: pieces of its columns are all rows."""
        last = node.view.entries[-1]
        columns = self._program.tensor(node.view.tensor).type.shape[-1]
        whole = last.axis is not None and last.axis.size == columns
        return whole and not self._is_apart(node)

    def program(self) -> Program:
        """The program that accesses the transposed tensors.

        Those of inputs are stored first, and outputs are stored from theirs at the end.
        """
        first: list[ir.Node] = []
        last: list[ir.Node] = []
        nodes = tuple(self._block(self._program.nodes))
        tensors: list[Tensor] = []
        for each in self._program.tensors:
            others = {key[1]: self.turned[key] for key in self.turned if key[0] == each.name}
            tensors += others.values()
            if each.type.role is not Role.LOCAL or not others:
                tensors.append(each)
            for rows, other in others.items():
                if each.type.role is Role.IN:
                    first += self._copy(each, other, rows, is_first=True)
                elif each.type.role is Role.OUT:
                    last += self._copy(each, other, rows, is_first=False)
        return dataclasses.replace(
            self._program, tensors=tuple(tensors), nodes=(*first, *nodes, *last)
        )

    def _copy(self, tensor: Tensor, other: Tensor, rows: _Rows, *, is_first: bool) -> _Nodes:
        """Nodes that store a tensor's transposes in another one, or it from these."""
        *outer, columns = tensor.type.shape
        outer = outer if rows is None else outer[:-1]
        points = []
        for _ in outer:
            points.append(unused("turned", self._indices))
            self._indices.add(points[-1])
        starts = [Entry(Affine.of(each)) for each in points]
        first, count = rows or (0, 1)
        kind = TileType(Axis(count), Axis(columns), tensor.type.format)
        ends = [Entry(Affine((), first), Axis(count)), Entry(Affine(), Axis(columns))]
        views = [
            View(tensor.name, (*starts, *(ends if rows else ends[1:]))),
            View(other.name, (*starts, ends[1], Entry(Affine(), Axis(count)))),
        ]
        kinds = [kind, turned(kind)]
        if not is_first:
            views.reverse()
            kinds.reverse()
        span = self._span(tensor.name)
        read, made = (self._names.fresh(ir.Value("turned", each)) for each in kinds)
        nodes: _Nodes = (
            ir.Load((), (read,), span, views[0]),
            ir.Transpose((read,), (made,), span),
            ir.Store((made,), (), span, views[1]),
        )
        for index, size in reversed([*zip(points, outer, strict=True)]):
            nodes = (ir.Loop((), (), span, "each", index, size, None, None, (), nodes, ()),)
        return nodes

    def _span(self, name: str) -> Span | None:
        """The place in the source of the first access to a tensor that is another now."""
        return next(
            node.span
            for node in walk(self._program.nodes)
            if isinstance(node, ir.Load | ir.Store)
            and node.view.tensor == name
            and self._is_apart(node)
        )

    def _block(self, nodes: _Nodes) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(self._block(node.body)))
            found = rows = None
            if isinstance(node, ir.Load | ir.Store):
                role = self._program.tensor(node.view.tensor).type.role
                if role is not Role.IN or not self._stays(node):
                    rows = self._rows(node)
                    found = self.turned.get((node.view.tensor, rows))
            if found is None or not isinstance(node, ir.Load | ir.Store):
                yield node
                continue
            view = _turned_view(node.view, found.name, rows)
            if _is_column(node.view):
                yield node.replace(view=view)
                continue
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


def _turned_view(view: View, name: str, rows: _Rows) -> View:
    """The view of a transposed tensor, which has these rows, with the transpose of a tile."""
    if rows is None:
        return View(name, (*view.entries, Entry(Affine(), Axis(1))))
    *outer, own, columns = view.entries
    return View(name, (*outer, columns, Entry(own.start - rows[0], own.axis)))


def _is_column(view: View) -> bool:
    """Whether a view has one column of a tensor as a row, or one element."""
    return view.entries[-1].axis is None


def _is_vector(view: View) -> bool:
    """Whether a view has one row, by an entry or because its tensor has no rows."""
    return len(view.entries) < 2 or view.entries[-2].axis is None
