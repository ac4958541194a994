"""Local tensors for computed tiles of which columns are taken where lanes cannot take them.

A tile is stored transposed where such columns begin at no multiple of 16 bytes, and so is one that
is joined in such places. Columns that are others in each iteration of a loop are loaded, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import Names, walk
from sw.ir.types import Entry, Role, Tensor, View
from sw.parts.forms.column_groups import (
    ColumnGroup,
    is_misplaced,
    joined_columns,
    point_indices,
    tile,
    turned,
)
from sw.parts.slices import Cut, cuts

__all__ = ["with_stored_columns"]


def with_stored_columns(program: Program, groups: Mapping[str, ColumnGroup]) -> Program:
    """The program that stores and loads such tiles; itself if it has none.

    Parameters
    ----------
    program : Program
    groups : mapping of str to ColumnGroup
        Those of its tiles.
    """
    values = _StoredValues(program, groups)
    return values.program() if values.stored else program


@dataclasses.dataclass(frozen=True)
class _Stored:
    """A computed tile in a tensor, transposed or as it is."""

    cut: Cut
    turned: bool

    def some(self, first: Affine, columns: Axis) -> View:
        """The view of some columns."""
        *outer, rows, _ = self.cut.view.entries
        some = Entry(first, columns)
        entries = (*outer, some, rows) if self.turned else (*outer, rows, some)
        return View(self.cut.view.tensor, entries)

    @property
    def tensor(self) -> Tensor:
        """The tensor of the program."""
        kind = self.cut.tensor.type
        *outer, rows, columns = kind.dims
        dims = (*outer, columns, rows) if self.turned else kind.dims
        return Tensor(self.cut.tensor.name, dataclasses.replace(kind, dims=dims, role=Role.LOCAL))


class _StoredValues:
    """Such tiles of a program.

    Members
    -------
    stored : dict of str to _Stored
        By the names of the tiles.
    """

    def __init__(self, program: Program, groups: Mapping[str, ColumnGroup]) -> None:
        self._program = program
        every = list(walk(program.nodes))
        self._makers = {each.name: node for node in every for each in node.results}
        self._users: dict[str, list[ir.Node]] = {}
        for node in every:
            for value in node.values:
                self._users.setdefault(value.name, []).append(node)
        self._points = point_indices(program)
        self._names = Names(program)
        self._groups = groups
        self.stored: dict[str, _Stored] = {}
        for cut in cuts(program):
            if (group := groups.get(cut.value.name)) is None:
                continue
            stored = self._shared(cut) if group.is_turned else self._apart(cut, group)
            if stored is not None:
                self.stored[cut.value.name] = stored

    def _apart(self, cut: Cut, group: ColumnGroup) -> _Stored | None:
        """A tile of which columns are loaded where it is not computed transposed."""
        places = list(self._places(cut))
        apart = any(is_misplaced(each, group.bits, self._points) for each in places)
        loaded = apart or any(each.terms for each in places)
        return _Stored(_in_order(cut), turned=apart) if loaded else None

    def _shared(self, cut: Cut) -> _Stored | None:
        """A tile that is computed transposed, and loaded for all that take it."""
        return _Stored(_in_order(cut), turned=True) if self._is_shared(cut) else None

    def _places(self, cut: Cut) -> Iterator[Affine]:
        """Columns of a value from which on some are taken, or at which tiles are joined."""
        for node in self._users.get(cut.value.name, ()):
            if isinstance(node, ir.Columns):
                yield node.first
        if isinstance(cut.node, ir.Join):
            yield from joined_columns(cut.node)

    def _is_shared(self, cut: Cut) -> bool:
        """Whether a tile that is computed transposed is stored.

        Its columns are otherwise resolved, as those of what it is made of. That is not possible for
        columns that are others in each iteration. Pieces of joined tiles would be ever smaller, and
        elements that are taken more often than once would be computed as often.
        """
        users = self._users.get(cut.value.name, ())
        pieces = [each for each in users if isinstance(each, ir.Columns)]
        if isinstance(cut.node, ir.Join):
            return self._is_used(cut.value)
        if any(each.first.terms for each in pieces):
            return True
        if not pieces or self._operands(cut.node) < 2:
            return False
        # A tile of which pieces are taken has a number of columns.
        taken = sum(each.count for each in pieces)
        return len(pieces) < len(users) or taken > int(tile(cut.value).cols.size)

    def _operands(self, node: ir.Node) -> int:
        """Tiles of a group's columns that element math takes, and operations more than one."""
        if not isinstance(node, ir.Map):
            return 0
        wide = [each for each in node.values if tile(each).cols == tile(node.result).cols]
        makers = (self._makers.get(each.name) for each in wide)
        return len(wide) + sum(isinstance(each, ir.Map) for each in makers)

    def _is_used(self, value: ir.Value) -> bool:
        """Whether a tile is used but to be stored, perhaps in another format."""
        for node in self._users.get(value.name, ()):
            if not isinstance(node, ir.Store | ir.Cast):
                return True
            if isinstance(node, ir.Cast) and self._is_used(node.result):
                return True
        return False

    def program(self) -> Program:
        """The program that stores and loads them."""
        return dataclasses.replace(
            self._program,
            tensors=(*self._program.tensors, *(each.tensor for each in self.stored.values())),
            nodes=tuple(self._block(self._program.nodes)),
        )

    def _block(self, nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(self._block(node.body)))
            made = {each: self.stored.get(each.name) for each in node.results}
            source = self.stored.get(node.values[0].name) if node.values else None
            if isinstance(node, ir.Join) and (own := made[node.result]):
                for operand, first in zip(node.values, joined_columns(node), strict=True):
                    yield from self._store(own, operand, first, node)
                yield from self._load(own, node.result, Affine(), node)
            elif isinstance(node, ir.Columns) and source is not None:
                yield from self._load(source, node.result, node.first, node)
            elif any(each is not None and self._is_turned(value) for value, each in made.items()):
                yield from self._reloaded(node)
            else:
                yield node
                for value, stored in made.items():
                    if stored is not None:
                        yield from self._store(stored, value, Affine(), node)

    def _is_turned(self, value: ir.Value) -> bool:
        return self._groups[value.name].is_turned

    def _reloaded(self, node: ir.Node) -> Iterator[ir.Node]:
        """A node whose result is stored, and loaded for all that take it."""
        stored = self.stored[node.result.name]
        made = self._names.fresh(node.result)
        yield node.replace(results=(made,))
        yield from self._store(stored, made, Affine(), node)
        yield from self._load(stored, node.result, Affine(), node)

    def _store(
        self, stored: _Stored, value: ir.Value, first: Affine, node: ir.Node
    ) -> Iterator[ir.Node]:
        view = stored.some(first, tile(value).cols)
        if stored.turned:
            other = self._names.fresh(value, turned(tile(value)))
            yield ir.Transpose((value,), (other,), node.span)
            value = other
        yield ir.Store((value,), (), node.span, view)

    def _load(
        self, stored: _Stored, value: ir.Value, first: Affine, node: ir.Node
    ) -> Iterator[ir.Node]:
        view = stored.some(first, tile(value).cols)
        if stored.turned:
            read = self._names.fresh(value, turned(tile(value)))
            yield ir.Load((), (read,), node.span, view)
            yield ir.Transpose((read,), (value,), node.span)
        else:
            yield ir.Load((), (value,), node.span, view)


def _in_order(cut: Cut) -> Cut:
    """A cut whose tensor has rows and columns last."""
    places = list(zip(cut.tensor.type.dims, cut.view.entries, strict=True))
    dims, entries = zip(*sorted(places, key=lambda each: each[1].axis is not None), strict=True)
    kind = dataclasses.replace(cut.tensor.type, dims=dims)
    view = View(cut.view.tensor, entries)
    return dataclasses.replace(cut, tensor=Tensor(cut.tensor.name, kind), view=view)
