"""Columns that begin where no transfer can, as rows of transposed tensors.

A transfer begins at a multiple of 16 bytes, and so does each row of a tensor, but not each column.
So a tile of which such columns are taken is stored transposed, and so are tiles that are joined in
such places. Loads and stores of such columns are those of rows of a transposed tensor. Columns that
are others in each iteration of a loop are loaded, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from hw.arch.descriptor import BASE_ALIGNMENT
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused, walk
from sw.ir.types import Entry, Role, Space, Span, Tensor, TensorType, TileType, View
from sw.parts.slices import Cut, cuts
from sw.passes.simplify import live

__all__ = ["with_turned_columns"]

_Nodes = tuple[ir.Node, ...]


def with_turned_columns(program: Program) -> Program:
    """The program without columns that begin at no multiple of `BASE_ALIGNMENT` bytes.

    It is the program itself if it has none that a tensor helps: columns of one row, and of tensors
    that are updated in place, gathered or scattered, stay.
    """
    lean = dataclasses.replace(program, nodes=live(program.nodes))
    found = _with_loaded_columns(lean)
    values = _StoredValues(found)
    found = values.program() if values.stored else found
    tensors = _TurnedTensors(found)
    found = tensors.program() if tensors.turned else found
    return program if found is lean else found


def _is_misplaced(first: Affine, bits: int, points: Collection[str] = ()) -> bool:
    """Whether columns from this one on begin at no multiple of `BASE_ALIGNMENT`, for any point."""
    steps = (factor for symbol, factor in first.terms if symbol in points)
    return any(each * bits % (8 * BASE_ALIGNMENT) for each in (first.constant, *steps))


def _with_loaded_columns(program: Program) -> Program:
    """The program that loads such columns of loaded tiles, and those of an iteration, alone."""
    loads: dict[str, ir.Load] = {}

    def block(nodes: _Nodes) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(block(node.body)))
            elif isinstance(node, ir.Load):
                loads[node.result.name] = node
            elif isinstance(node, ir.Columns) and (load := loads.get(node.values[0].name)):
                *outer, last = load.view.entries
                bits = program.tensor(load.view.tensor).type.format.bits
                apart = node.first.terms or _is_misplaced(node.first, bits)
                if last.axis is not None and apart:
                    entry = Entry(last.start + node.first, Axis(node.count))
                    view = View(load.view.tensor, (*outer, entry))
                    node = ir.Load((), node.results, load.span, view)
            yield node

    nodes = tuple(block(program.nodes))
    return program if nodes == program.nodes else dataclasses.replace(program, nodes=nodes)


@dataclasses.dataclass(frozen=True)
class _Stored:
    """A computed tile in a tensor, transposed or as it is."""

    cut: Cut
    turned: bool

    def some(self, first: Affine, columns: Axis) -> View:
        """The view of some columns."""
        *outer, rows, last = self.cut.view.entries
        some = Entry(first, columns)
        entries = (*outer, some, rows) if self.turned else (*outer, rows, some)
        assert last.start == Affine()
        return View(self.cut.view.tensor, entries)

    @property
    def tensor(self) -> Tensor:
        """The tensor of the program."""
        kind = self.cut.tensor.type
        *outer, rows, columns = kind.dims
        dims = (*outer, columns, rows) if self.turned else kind.dims
        kind = dataclasses.replace(kind, dims=dims, role=Role.LOCAL)
        return Tensor(self.cut.tensor.name, kind)


class _StoredValues:
    """Computed tiles whose columns are loaded, and tiles that are joined by columns.

    Members
    -------
    stored : dict of str to _Stored
        By the names of the tiles.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        every = list(walk(program.nodes))
        self._makers = {each.name: node for node in every for each in node.results}
        self._users: dict[str, list[ir.Node]] = {}
        for node in every:
            for value in node.values:
                self._users.setdefault(value.name, []).append(node)
        points = {each.index for each in every if isinstance(each, ir.Loop) and not each.blocks}
        self._names = Names(program)
        self.stored: dict[str, _Stored] = {}
        for cut in cuts(program):
            places = list(self._places(cut))
            bits = self._bits(cut.value, set()) if places else 0
            turned = any(_is_misplaced(each, bits, points) for each in places)
            if turned or any(each.terms for each in places):
                self.stored[cut.value.name] = _Stored(_in_order(cut), turned)

    def _places(self, cut: Cut) -> Iterator[Affine]:
        """Columns of a value from which on some are taken, or at which tiles are joined."""
        for node in self._users.get(cut.value.name, ()):
            if isinstance(node, ir.Columns):
                yield node.first
        if isinstance(cut.node, ir.Join):
            yield from _joined(cut.node)

    def _bits(self, value: ir.Value, known: set[str]) -> int:
        """Fewest bits of an element: of a tile, what it is made of and what is made of it.

        Only element math stands between these.
        """
        kind = _tile(value)
        known.add(value.name)
        nodes = [self._makers.get(value.name), *self._users.get(value.name, ())]
        found = [kind.format.bits]
        for node in nodes:
            if isinstance(node, ir.Load | ir.Store):
                found.append(self._program.tensor(node.view.tensor).type.format.bits)
            elif isinstance(node, ir.Map | ir.Cast | ir.Buffer):
                beside = (each for each in (*node.values, *node.results) if each.name not in known)
                wide = (each for each in beside if _tile(each).cols == kind.cols)
                found += [self._bits(each, known) for each in wide]
        return min(each for each in found if each > 1)

    def program(self) -> Program:
        """The program that stores and loads them."""
        return dataclasses.replace(
            self._program,
            tensors=(*self._program.tensors, *(each.tensor for each in self.stored.values())),
            nodes=tuple(self._block(self._program.nodes)),
        )

    def _block(self, nodes: _Nodes) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(self._block(node.body)))
            made = {each: self.stored.get(each.name) for each in node.results}
            source = self.stored.get(node.values[0].name) if node.values else None
            if isinstance(node, ir.Join) and (own := made[node.result]):
                for operand, first in zip(node.values, _joined(node), strict=True):
                    yield from self._store(own, operand, first, node)
                yield from self._load(own, node.result, Affine(), node)
            elif isinstance(node, ir.Columns) and source is not None:
                yield from self._load(source, node.result, node.first, node)
            else:
                yield node
                for value, stored in made.items():
                    if stored is not None:
                        yield from self._store(stored, value, Affine(), node)

    def _store(
        self, stored: _Stored, value: ir.Value, first: Affine, node: ir.Node
    ) -> Iterator[ir.Node]:
        view = stored.some(first, _tile(value).cols)
        if stored.turned:
            *_, last = turned = self._transposed(value, node)
            yield from turned
            value = last.result
        yield ir.Store((value,), (), node.span, view)

    def _transposed(self, value: ir.Value, node: ir.Node) -> list[ir.Node]:
        """Nodes that make the transpose of a value; lanes make constants in place."""
        turned = self._names.fresh(value, _turned(_tile(value)))
        maker = self._makers.get(value.name)
        if isinstance(maker, ir.Full):
            return [maker.replace(results=(turned,), rows=maker.cols, cols=maker.rows)]
        source = maker.values[0] if isinstance(maker, ir.Cast) else None
        if source is not None and isinstance(self._makers[source.name], ir.Full):
            assert isinstance(maker, ir.Cast)
            (constant,) = self._transposed(source, node)
            return [constant, maker.replace(operands=(constant.result,), results=(turned,))]
        return [ir.Transpose((value,), (turned,), node.span)]

    def _load(
        self, stored: _Stored, value: ir.Value, first: Affine, node: ir.Node
    ) -> Iterator[ir.Node]:
        view = stored.some(first, _tile(value).cols)
        turned = self._names.fresh(value, _turned(_tile(value)))
        yield ir.Load((), (turned if stored.turned else value,), node.span, view)
        if stored.turned:
            yield ir.Transpose((turned,), (value,), node.span)


class _TurnedTensors:
    """Tensors of the program that have a transposed one.

    Members
    -------
    turned : dict of str to Tensor
        The transposed tensors, by the names of those that they stand for.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = Names(program)
        every = list(walk(program.nodes))
        self._indices = {each.index for each in every if isinstance(each, ir.Loop)}
        self._points = {e.index for e in every if isinstance(e, ir.Loop) and not e.blocks}
        names = {each.name for each in program.tensors}
        self.turned: dict[str, Tensor] = {}
        for tensor in program.tensors:
            if self._has_turned(tensor, _accesses(every, tensor.name)):
                *outer, rows, columns = tensor.type.dims
                kind = TensorType(
                    (*outer, columns, rows), tensor.type.format, Space.MEMORY, Role.LOCAL
                )
                name = unused(f"{tensor.name}.columns", names)
                names.add(name)
                self.turned[tensor.name] = Tensor(name, kind)

    def _has_turned(self, tensor: Tensor, accesses: list[ir.Load | ir.Store] | None) -> bool:
        """Whether some columns are in such places, and all that must may be rows."""
        kind = tensor.type
        if kind.role is Role.INOUT or kind.space is not Space.MEMORY:
            return False
        apart = [each for each in accesses or () if self._is_apart(each)]
        needed = apart if kind.role is Role.IN else accesses or ()
        return bool(apart) and all(_has_rows(each.view) for each in needed)

    def _is_apart(self, node: ir.Load | ir.Store) -> bool:
        """Whether an access begins in such a place."""
        bits = self._program.tensor(node.view.tensor).type.format.bits
        return _is_misplaced(node.view.entries[-1].start, bits, self._points)

    def program(self) -> Program:
        """The program that accesses the transposed tensors.

        Those of inputs are stored first, and outputs are stored from theirs at the end.
        """
        first: list[ir.Node] = []
        last: list[ir.Node] = []
        nodes = tuple(self._block(self._program.nodes))
        tensors = []
        for each in self._program.tensors:
            if each.name not in self.turned:
                tensors.append(each)
                continue
            turned = self.turned[each.name]
            tensors.append(turned)
            if each.type.role is not Role.LOCAL:
                tensors.append(each)
            if each.type.role is Role.IN:
                first += self._copy(each, turned)
            elif each.type.role is Role.OUT:
                last += self._copy(turned, each)
        return dataclasses.replace(
            self._program, tensors=tuple(tensors), nodes=(*first, *nodes, *last)
        )

    def _copy(self, source: Tensor, target: Tensor) -> _Nodes:
        """Nodes that store one tensor as the transpose of another."""
        *outer, rows, columns = source.type.dims
        points = []
        for _ in outer:
            points.append(unused("turned", self._indices))
            self._indices.add(points[-1])
        starts = [Entry(Affine.of(each)) for each in points]
        ends = [Entry(Affine(), Axis(each.size)) for each in (rows, columns)]
        kind = TileType(Axis(rows.size), Axis(columns.size), source.type.format)
        span = self._span(source, target)
        read = self._names.fresh(ir.Value("turned", kind))
        made = self._names.fresh(ir.Value("turned", _turned(kind)))
        nodes: _Nodes = (
            ir.Load((), (read,), span, View(source.name, (*starts, *ends))),
            ir.Transpose((read,), (made,), span),
            ir.Store((made,), (), span, View(target.name, (*starts, *reversed(ends)))),
        )
        for index, dim in reversed([*zip(points, outer, strict=True)]):
            nodes = (ir.Loop((), (), span, "each", index, dim.size, None, None, (), nodes, ()),)
        return nodes

    def _span(self, *tensors: Tensor) -> Span | None:
        """The place in the source of the first access to one of these that is misplaced."""
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
            if not isinstance(node, ir.Load | ir.Store) or node.view.tensor not in self.turned:
                yield node
                continue
            role = self._program.tensor(node.view.tensor).type.role
            if role is Role.IN and not self._is_apart(node):
                yield node
                continue
            view = View(self.turned[node.view.tensor].name, _swapped(node.view.entries))
            (value,) = node.results or node.values
            turned = self._names.fresh(value, _turned(_tile(value)))
            if isinstance(node, ir.Load):
                yield node.replace(results=(turned,), view=view)
                yield ir.Transpose((turned,), (value,), node.span)
            else:
                yield ir.Transpose((value,), (turned,), node.span)
                yield node.replace(operands=(turned,), view=view)


def _accesses(nodes: list[ir.Node], name: str) -> list[ir.Load | ir.Store] | None:
    """Loads and stores of a tensor; None if it is gathered or scattered."""
    found = []
    for node in nodes:
        view = getattr(node, "view", None)
        if isinstance(view, View) and view.tensor == name:
            if not isinstance(node, ir.Load | ir.Store):
                return None
            found.append(node)
    return found


def _in_order(cut: Cut) -> Cut:
    """A cut whose tensor has rows and columns last."""
    places = list(zip(cut.tensor.type.dims, cut.view.entries, strict=True))
    dims, entries = zip(*sorted(places, key=lambda each: each[1].axis is not None), strict=True)
    kind = dataclasses.replace(cut.tensor.type, dims=dims)
    view = View(cut.view.tensor, entries)
    return dataclasses.replace(cut, tensor=Tensor(cut.tensor.name, kind), view=view)


def _joined(node: ir.Join) -> Iterator[Affine]:
    """First columns of the tiles that are joined."""
    first = 0
    for each in node.values:
        yield Affine((), first)
        first += int(_tile(each).cols.size)


def _has_rows(view: View) -> bool:
    """Whether a view has rows and columns, by its last two entries."""
    return len(view.entries) > 1 and all(each.axis is not None for each in view.entries[-2:])


def _swapped(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return (*entries[:-2], entries[-1], entries[-2])


def _tile(value: ir.Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


def _turned(kind: TileType) -> TileType:
    """Type of the transpose."""
    return TileType(kind.cols, kind.rows, kind.format)
