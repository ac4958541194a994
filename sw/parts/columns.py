"""Column ranges: splits and joins of tiles become loads and stores of parts of rows.

A tile that is joined from others is stored in one piece for each of them. What a piece needs is
computed on its columns alone, so what is split is loaded in ranges of columns.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from hw.arch.descriptor import BASE_ALIGNMENT
from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.infer import infer
from sw.ir.program import Program
from sw.ir.rewrite import used, walk
from sw.ir.types import Entry, Role, Tensor, TileType, View
from sw.ir.values import variable
from sw.language.program_error import ProgramError
from sw.parts.order import written_first

__all__ = ["MisplacedColumnsError", "column_ranges", "require_split_loads"]

#: First column and number of columns; None: all of them.
_Range = tuple[int, int] | None


def column_ranges(program: Program, *, joins: bool = False) -> Program:
    """The program without splits and joins, or as it is.

    Parameters
    ----------
    program : Program
        After `simplify`. It keeps its splits and joins if a tile that depends on a join is
        reduced along its rows, multiplied or transposed, if a product is split, if a loop carries
        tiles, or if a tensor is loaded and stored behind that. Local tensors are not.
    joins : bool
        Whether joins may stay whose tiles are reduced, multiplied or transposed whole.

    Raises
    ------
    MisplacedColumnsError
        If columns begin in memory where no transfer can.
    """
    divided = any(isinstance(node, ir.Columns | ir.Join) for node in walk(program.nodes))
    loaded, stored = (
        {node.view.tensor for node in walk(program.nodes) if isinstance(node, kind)}
        for kind in (ir.Load, ir.Store)
    )
    # A local tensor is stored before it is loaded, in the order of the pieces, too.
    updated = loaded & stored - {e.name for e in program.tensors if e.type.role is Role.LOCAL}
    if not divided or updated - written_first(program):
        return program
    try:
        return dataclasses.replace(program, nodes=_Ranges(program, joins=joins).nodes)
    except _NoRangesError:
        return program


def require_split_loads(program: Program) -> None:
    """Refuse pieces of loaded tiles that begin where no transfer can, which no division helps.

    Raises
    ------
    MisplacedColumnsError
        It names the line of the load.
    """
    every = [*walk(program.nodes)]
    tensors = {each.name: each for each in program.tensors}
    makers = {each.name: node for node in every for each in node.results}
    taken = {each.name for node in every for each in used(node)}
    for node in every:
        if isinstance(node, ir.Columns) and node.result.name in taken:
            load = makers.get(node.values[0].name)
            if isinstance(load, ir.Load):
                _require_place(tensors[load.view.tensor], node.first.constant, load)


class MisplacedColumnsError(ProgramError):
    """Columns that begin where no transfer can.

    They do in every form of their program but that of `sw.parts.forms.turned_columns`.
    """


class _NoRangesError(Exception):
    """An operation that needs whole rows of a tile that is joined, or gives them."""


class _Ranges:
    """The nodes of a program without splits and joins.

    Members
    -------
    nodes : tuple of Node
    """

    def __init__(self, program: Program, *, joins: bool) -> None:
        self._joins_stay = joins
        self._tensors = {each.name: each for each in program.tensors}
        self._makers = {each.name: node for node in walk(program.nodes) for each in node.results}
        self._names: set[str] = set()
        #: Columns of values at which another piece begins.
        self._begun: dict[str, set[int]] = {}
        #: Parts of values that a store has needed.
        self._known: dict[tuple[str, _Range], ir.Value] = {}
        self.nodes = tuple(self._block(program.nodes))

    def _block(self, nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop) and not node.carries:
                yield node.replace(nodes=tuple(self._block(node.body)))
            elif isinstance(node, ir.Store):
                yield from self._store(node)
            elif isinstance(node, ir.Loop | ir.Scatter):
                raise _NoRangesError

    def _store(self, node: ir.Store) -> Iterator[ir.Node]:
        """The pieces of a stored tile, each behind what it needs."""
        (value,) = node.operands
        assert isinstance(value, ir.Value)
        turning = self._makers.get(value.name)
        if isinstance(turning, ir.Transpose) and self._cuts(turning.values[0]):
            (value,) = turning.values
        else:
            turning = None
        ends = sorted(self._cuts(value))
        ranges: list[_Range] = [None]
        if ends:
            ends = [0, *ends, _columns(value)]
            ranges = [(first, end - first) for first, end in itertools.pairwise(ends)]
        self._known.clear()
        for each in ranges:
            made: list[ir.Node] = []
            part = self._part(value, each, made)
            view = self._view(node, each, is_turned=turning is not None)
            if turning is not None:
                part = self._made(turning.replace(operands=(part,), results=()), value.name, made)
            yield from made
            yield node.replace(operands=(part,), view=view)

    def _cuts(self, value: ir.Value) -> set[int]:
        """Columns of a tile at which another piece begins."""
        if value.name not in self._begun:
            self._begun[value.name] = self._found_cuts(value)
        return self._begun[value.name]

    def _found_cuts(self, value: ir.Value) -> set[int]:
        node = self._makers.get(value.name)
        assert isinstance(value.type, TileType)
        match node:
            case ir.Load() | ir.Full() | ir.Iota():
                return set()
            case ir.Columns():
                first = _first(node)
                cuts = (each - first for each in self._cuts(node.values[0]))
                return {each for each in cuts if 0 < each < _columns(value)}
            case ir.Join():
                found, first = set(), 0
                for operand in node.values:
                    found |= {first} | {first + each for each in self._cuts(operand)}
                    first += _columns(operand)
                return found - {0}
            case ir.Map() | ir.Cast() | ir.Buffer():
                wide = value.type.cols
                same = [each for each in node.values if _cols(each) == wide]
                return {cut for each in same for cut in self._cuts(each)}
            case ir.Reduce() if node.axis == 0:
                return self._cuts(node.values[0])
            case ir.Reduce() | ir.Matmul() | ir.Transpose():
                if not self._joins_stay and any(self._cuts(each) for each in node.values):
                    raise _NoRangesError
                return set()
        raise _NoRangesError

    def _part(self, value: ir.Value, wanted: _Range, made: list[ir.Node]) -> ir.Value:
        """Some columns of a value, computed by nodes that are added to a list."""
        if wanted is not None and wanted == (0, _columns(value)):
            wanted = None
        key = value.name, wanted
        if key not in self._known:
            self._known[key] = self._computed(value, wanted, made)
        return self._known[key]

    def _computed(self, value: ir.Value, wanted: _Range, made: list[ir.Node]) -> ir.Value:
        node = self._makers[value.name]
        if isinstance(node, ir.Columns):
            first, count = wanted or (0, node.count)
            return self._part(node.values[0], (_first(node) + first, count), made)
        if isinstance(node, ir.Join) and (wanted or not self._joins_stay):
            return self._joined(node, wanted or (0, _columns(value)), made)
        if isinstance(node, ir.Transpose) and wanted is not None:
            return self._turned(node, wanted, made)
        changes: dict[str, Any] = {}
        if wanted is not None:
            changes = self._changes(node, wanted)
        operands = []
        for each in node.operands:
            if isinstance(each, ir.Value):
                whole = wanted is None or _cols(each) != _cols(value)
                each = self._part(each, None if whole else wanted, made)
            operands.append(each)
        changed = node.replace(operands=tuple(operands), results=(), **changes)
        return self._made(changed, value.name, made)

    def _made(self, node: ir.Node, name: str, made: list[ir.Node]) -> ir.Value:
        """The result, named so or similarly, of a node without one that is added to a list."""
        (type_,) = infer(node, self._tensors)
        result = ir.Value(self._name(name), type_)
        made.append(node.replace(results=(result,)))
        return result

    def _turned(self, node: ir.Transpose, wanted: tuple[int, int], made: list[ir.Node]) -> ir.Value:
        """Columns of a transposed tile: rows of the tensor that it is loaded from."""
        load = self._makers[node.values[0].name]
        if not isinstance(load, ir.Load):
            raise _NoRangesError
        view = self._view(load, wanted, is_turned=True)
        read = self._made(load.replace(results=(), view=view), load.result.name, made)
        return self._made(node.replace(operands=(read,), results=()), node.result.name, made)

    def _joined(self, node: ir.Join, wanted: tuple[int, int], made: list[ir.Node]) -> ir.Value:
        """Columns of a joined tile that all lie in one of the tiles joined."""
        first, count = wanted
        for each in node.values:
            columns = _columns(each)
            if first < columns:
                return self._part(each, (first, count), made)
            first -= columns
        raise AssertionError(node)

    def _changes(self, node: ir.Node, wanted: tuple[int, int]) -> dict[str, Any]:
        """Fields of a node that makes some columns alone."""
        first, count = wanted
        match node:
            case ir.Load():
                return {"view": self._view(node, wanted)}
            case ir.Full():
                return {"cols": Axis(count)}
            case ir.Iota():
                start = node.start + first if node.axis else node.start
                return {"cols": Axis(count), "start": start}
            case ir.Map() | ir.Cast() | ir.Buffer() | ir.Reduce():
                return {}
        raise _NoRangesError

    def _view(self, node: ir.Load | ir.Store, wanted: _Range, *, is_turned: bool = False) -> View:
        """Some columns of a view, or some of its rows, which are those of the transpose."""
        view = node.view
        if wanted is None:
            return view
        first, count = wanted
        if not is_turned:
            _require_place(self._tensors[view.tensor], first, node)
        entries = list(view.entries)
        kept = [number for number, each in enumerate(entries) if each.axis is not None]
        if is_turned and len(kept) < 2:
            raise _NoRangesError
        axis = kept[0 if is_turned else -1]
        entries[axis] = Entry(entries[axis].start + first, Axis(count))
        return View(view.tensor, tuple(entries))

    def _name(self, name: str) -> str:
        """A name that no value has yet."""
        base, number = variable(name), len(self._names)
        if name in self._names or not base:
            name = f"{base}.{number}" if base else str(number)
        while name in self._names:
            number += 1
            name = f"{base}.{number}" if base else str(number)
        self._names.add(name)
        return name


def _require_place(tensor: Tensor, first: int, node: ir.Node) -> None:
    """Refuse columns of a tensor from a column on which no transfer can begin."""
    bits = tensor.type.format.bits
    start = first * bits // 8
    if start % BASE_ALIGNMENT == 0:
        return
    noun = "a computed tile" if tensor.name.startswith("value.") else f"`{tensor.name}`"
    raise MisplacedColumnsError(
        "unserved",
        f"Columns of {noun} that are loaded or stored alone must begin at a "
        f"multiple of {BASE_ALIGNMENT} bytes, not {start}: pad those before them to a "
        f"multiple of {BASE_ALIGNMENT * 8 // bits} columns, or have a tensor of their own",
        node.span,
        value=str(start),
    )


def _first(node: ir.Columns) -> int:
    """The first of the columns, if it is the same in all iterations."""
    if node.first.terms:
        raise _NoRangesError
    return node.first.constant


def _cols(value: ir.Value) -> Axis:
    assert isinstance(value.type, TileType)
    return value.type.cols


def _columns(value: ir.Value) -> int:
    """Columns of a tile that is split or joined."""
    size = _cols(value).size
    if isinstance(size, str):
        raise _NoRangesError
    return size
