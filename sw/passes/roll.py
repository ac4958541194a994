"""roll: stores that compute the same of different places become a loop over points.

A loop over ``range`` is recorded once for each iteration, and so are the pieces of tiles that a
program splits by columns and joins again: heads of attention, groups of a norm. What such stores
need is the same program of views that begin elsewhere. As a loop over points it is one program,
whose iterations are launched or computed together, and a softmax in it is found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.ir.program import Program
from sw.ir.rewrite import rename, unused, used, walk
from sw.ir.types import Role, Space, TileType, View
from sw.ir.values import variable
from sw.ir.verify import verify
from sw.language.program_error import ProgramError
from sw.parts.columns import column_ranges
from sw.parts.sections import is_repeated
from sw.parts.slices import slice_of, stores
from sw.passes.piece_tensors import with_piece_tensors
from sw.passes.simplify import simplify

__all__ = ["roll"]

#: What a piece has at least, and computes by itself.
_WORK = ir.Matmul | ir.Reduce
#: Name of the index of a loop.
_PIECE = "piece"
#: Steps of the starts of each view, in the order of their nodes.
_Steps = list[tuple[int, ...]]


def roll(program: Program) -> Program:
    """The program with loops over points for stores that compute the same, or as it is.

    Parameters
    ----------
    program : Program
        After `accumulate`. It stays as it is if a tensor is updated in place or stays on the chip.
        Stores stay if they share products or reductions, or if they compute neither of pieces that
        are joined: element math is computed on whole tiles.
    """
    kinds = {type(each) for each in walk(program.nodes)}
    types = [each.type for each in program.tensors]
    updated = any(each.role is Role.INOUT or each.space is Space.CHIP for each in types)
    repeated = any(is_repeated(each) for each in program.nodes)
    if updated or repeated or ir.Scatter in kinds:
        return program
    if sum(1 for _ in stores(program.nodes)) == 1 and ir.Join not in kinds:
        return program
    lean = simplify(program)
    if (rolled := _rolled(program, lean)) is not None:
        return verify(rolled)
    left_out: set[str] = set()
    while kinds & {ir.Split, ir.Join}:
        whole = with_piece_tensors(lean, left_out)
        if whole is lean or (rolled := _rolled(program, whole)) is None:
            break
        local = {each.name for each in whole.tensors} - {each.name for each in lean.tensors}
        if not (unused_by_pieces := local - _rolled_tensors(rolled)):
            return verify(rolled)
        left_out |= unused_by_pieces
    return program


def _rolled(program: Program, lean: Program) -> Program | None:
    """A program with loops for what a simplified form of it stores; None if it has none."""
    try:
        lean = simplify(column_ranges(lean, joins=True))
    except ProgramError:
        return None
    # Of a tile that is joined, element math alone is computed whole.
    elements = not any(isinstance(each, ir.Join) for each in walk(program.nodes))
    slices = [_in_order_of_use(slice_of(lean, [each])) for each in stores(lean.nodes)]
    rolled: list[tuple[ir.Node, ...]] = []
    left = list(slices)
    while left:
        alike = [each for each in left if _steps(left[0], each) is not None]
        loop = _loop(alike, elements=elements)
        rolled.append(left[0].nodes if loop is None else (loop,))
        gone = alike if loop else left[:1]
        left = [each for each in left if each not in gone]
    if len(rolled) == len(slices):
        return None
    taken: set[str] = set()
    nodes = tuple(node for each in rolled for node in _renamed(program, each, taken))
    return dataclasses.replace(program.after("roll", nodes), tensors=lean.tensors)


def _in_order_of_use(program: Program) -> Program:
    """A program of one store whose nodes stand in the order in which it needs them."""
    return dataclasses.replace(program, nodes=_by_use(program.nodes, ()))


def _by_use(nodes: tuple[ir.Node, ...], nexts: tuple[ir.Value, ...]) -> tuple[ir.Node, ...]:
    """Live nodes of a block, whose loop carries some values, in the order of their uses."""
    makers = {each.name: node for node in nodes for each in node.results}
    #: By the identity of the nodes given.
    found: dict[int, ir.Node] = {}

    def need(node: ir.Node) -> None:
        if id(node) in found:
            return
        own = node
        if isinstance(node, ir.Loop):
            own = node.replace(nodes=_by_use(node.body, node.nexts))
        for each in used(own):
            if each.name in makers:
                need(makers[each.name])
        found[id(node)] = own

    for node in nodes:
        if not node.results or any(stores(node.body)):
            need(node)
    for each in nexts:
        if each.name in makers:
            need(makers[each.name])
    return tuple(found.values())


def _rolled_tensors(program: Program) -> set[str]:
    """The tensors that loops of pieces access."""
    loops = [each for each in program.nodes if isinstance(each, ir.Loop)]
    pieces = (each for each in loops if variable(each.index) == _PIECE)
    nodes = (node for each in pieces for node in walk(each.body))
    return {view.tensor for node in nodes if (view := getattr(node, "view", None)) is not None}


def _loop(alike: Sequence[Program], *, elements: bool) -> ir.Loop | None:
    """Loops over points with the nodes of some programs; None if there are none."""
    first, *others = sorted(alike, key=lambda each: _steps(alike[0], each) or [])
    if not others or not _may_repeat(first, others[0], elements=elements):
        return None
    starts = [_steps(first, each) or [] for each in (first, *others)]
    counts = _counts(starts)
    nodes = first.nodes
    span = next(stores(nodes)).span
    names = {each.index for each in walk(nodes) if isinstance(each, ir.Loop)}
    apart = 1
    for count in reversed(counts):
        index = unused(_PIECE, names)
        names.add(index)
        nodes = tuple(_moved(nodes, index, iter(starts[apart])))
        nodes = (ir.Loop((), (), span, "each", index, count, None, None, (), nodes, ()),)
        apart *= count
    loop = nodes[0]
    return loop if counts and isinstance(loop, ir.Loop) else None


def _counts(starts: Sequence[_Steps]) -> tuple[int, ...]:
    """Counts of one loop, or of two, whose points have these starts in order; none: no loops."""
    every = len(starts)
    for inner in range(every, 1, -1):
        if every % inner == 0:
            outer = starts[inner % every]
            if all(
                each == _sum(starts[1], number % inner, outer, number // inner)
                for number, each in enumerate(starts)
            ):
                return (inner,) if inner == every else (every // inner, inner)
    return ()


def _sum(one: _Steps, times: int, other: _Steps, others: int) -> _Steps:
    """Steps so many times, and other ones so many times."""
    return [
        tuple(times * mine + others * its for mine, its in zip(*pair, strict=True))
        for pair in zip(one, other, strict=True)
    ]


def _may_repeat(first: Program, second: Program, *, elements: bool) -> bool:
    """Whether a piece has products or reductions, and none that another piece has, too.

    It may have neither if it may be element math.
    """
    work = [each for each in walk(first.nodes) if isinstance(each, _WORK)]
    known = {value.name for each in walk(second.nodes) for value in each.results}
    if not work:
        return elements
    return not any(value.name in known for each in work for value in each.results)


def _moved(
    nodes: tuple[ir.Node, ...], index: str, steps: Iterator[tuple[int, ...]]
) -> Iterator[ir.Node]:
    """Nodes whose views begin further on by a step for each iteration of a loop."""
    for node in nodes:
        if isinstance(node, ir.Loop):
            node = node.replace(nodes=tuple(_moved(node.body, index, steps)))
        elif (view := getattr(node, "view", None)) is not None:
            entries = tuple(
                dataclasses.replace(each, start=each.start + Affine.of(index) * step)
                for each, step in zip(view.entries, next(steps), strict=True)
            )
            node = node.replace(view=View(view.tensor, entries))
        yield node


def _renamed(program: Program, nodes: tuple[ir.Node, ...], taken: set[str]) -> tuple[ir.Node, ...]:
    """Nodes with names of values and loops that no others have; they are taken then."""
    values, symbols = {}, {}
    for node in walk(nodes):
        for each in node.results:
            values[each.name] = unused(each.name, taken)
        if isinstance(node, ir.Loop):
            for each in node.carries:
                values[each.name] = unused(each.name, taken)
            index = unused(node.index, taken)
            if index != node.index:
                symbols[node.index] = Affine.of(index)
                symbols[size_symbol(node.index)] = Affine.of(size_symbol(index))
            taken.add(index)
    taken.update(values.values())
    return rename(dataclasses.replace(program, nodes=nodes), values, symbols).nodes


def _steps(one: Program, other: Program) -> _Steps | None:
    """How much further on the views of a program begin than those of another; None: it differs."""
    match = _Match()
    return match.steps if match.same(one.nodes, other.nodes) else None


class _Match:
    """Comparison of two programs but for names, places in the source and starts of views."""

    def __init__(self) -> None:
        self.steps: _Steps = []
        self._names: dict[str, str] = {}
        self._others: dict[str, str] = {}

    def same(self, one: Any, other: Any) -> bool:
        """Whether parts of the programs are the same."""
        if type(one) is not type(other):
            return False
        match one:
            case tuple():
                return len(one) == len(other) and all(map(self.same, one, other))
            case ir.Value():
                return self._is_named(one.name, other.name) and self.same(one.type, other.type)
            case View():
                pairs = list(zip(one.entries, other.entries))
                self.steps.append(tuple(b.start.constant - a.start.constant for a, b in pairs))
                return one.tensor == other.tensor and all(
                    self._same_terms(a.start, b.start) and self.same(a.axis, b.axis)
                    for a, b in pairs
                )
            case Affine():
                return one.constant == other.constant and self._same_terms(one, other)
            case Axis() if isinstance(one.size, str):
                named = isinstance(other.size, str) and self._is_named(one.size, other.size)
                return named and self._same_fields(one, other, ("size",))
            case ir.Loop():
                sizes = size_symbol(one.index), size_symbol(other.index)
                named = self._is_named(one.index, other.index) and self._is_named(*sizes)
                return named and self._same_fields(one, other, ("index", "span"))
            case ir.Node() | TileType() | Axis() | Bound():
                return self._same_fields(one, other, ("span",))
        return bool(one == other)

    def _same_fields(self, one: Any, other: Any, but: tuple[str, ...]) -> bool:
        names = (each.name for each in dataclasses.fields(one) if each.name not in but)
        return all(self.same(getattr(one, each), getattr(other, each)) for each in names)

    def _same_terms(self, one: Affine, other: Affine) -> bool:
        """Whether two forms are the same but for their constants."""
        mine = sorted((self._names.get(symbol, symbol), factor) for symbol, factor in one.terms)
        return mine == sorted(other.terms)

    def _is_named(self, one: str, other: str) -> bool:
        """Whether one name stands for the other, or may from now on."""
        known = self._names.setdefault(one, other), self._others.setdefault(other, one)
        return known == (other, one)
