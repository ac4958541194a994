"""roll: stores that compute the same of different places become a loop over points.

A loop over ``range`` is recorded once for each iteration, and so are the pieces of tiles that a
program splits by columns and joins again: heads of attention, groups of a norm. What such stores
need is the same program of views that begin elsewhere. As a loop over points it is one program,
whose iterations are launched or computed together, and a softmax in it is found.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.ir.program import Program
from sw.ir.rewrite import rename, unused, used, walk
from sw.ir.types import Role, Space, TileType, View
from sw.ir.values import variable
from sw.ir.verify import VerifyError, verify
from sw.parts.columns import MisplacedColumnsError, column_ranges
from sw.parts.order import written_first
from sw.parts.sections import is_repeated
from sw.parts.slices import slice_of, stores
from sw.passes.piece_tensors import with_piece_tensors
from sw.passes.simplify import simplified

__all__ = ["roll"]

#: What a piece has at least, and computes by itself.
_WORK = ir.Matmul | ir.Reduce
#: Name of the index of a loop.
_PIECE = "piece"
_Nodes = tuple[ir.Node, ...]
#: Steps of the starts of each view, in the order of their nodes.
_Steps = list[tuple[int, ...]]


def roll(program: Program) -> Program:
    """The program with loops over points for stores that compute the same, or as it is.

    Parameters
    ----------
    program : Program
        After `accumulate`. It stays as it is if a tensor stays on the chip, or is updated in place
        by a store behind a load. Stores stay if they share products or reductions, or if they
        compute neither of pieces that are joined: element math is computed on whole tiles.
    """
    kinds = {type(each) for each in walk(program.nodes)}
    updated = {each.name for each in program.tensors if each.type.role is Role.INOUT}
    on_chip = any(each.type.space is Space.CHIP for each in program.tensors)
    repeated = any(is_repeated(each) for each in program.nodes)
    if updated - written_first(program) or on_chip or repeated or ir.Scatter in kinds:
        return program
    if sum(1 for _ in stores(program.nodes)) == 1 and ir.Join not in kinds:
        return program
    lean = _simplified(program)
    if (rolled := _rolled(program, lean)) is not None:
        return rolled
    left_out: set[str] = set()
    while kinds & {ir.Columns, ir.Join}:
        whole = with_piece_tensors(lean, left_out)
        if whole is lean or (rolled := _rolled(program, whole)) is None:
            break
        local = {each.name for each in whole.tensors} - {each.name for each in lean.tensors}
        if not (unused_by_pieces := local - _rolled_tensors(rolled)):
            return rolled
        left_out |= unused_by_pieces
    return program


def _simplified(program: Program) -> Program:
    return dataclasses.replace(program, nodes=simplified(program))


def _rolled(program: Program, lean: Program) -> Program | None:
    """A program with loops for what a simplified form of it stores; None if it has none."""
    try:
        lean = _simplified(column_ranges(lean, joins=True))
    except MisplacedColumnsError:
        return None
    # Of a tile that is joined, element math alone is computed whole.
    elements = not any(isinstance(each, ir.Join) for each in walk(program.nodes))
    slices = _slices(lean)
    kinds = {store: _kind(nodes) for store, nodes in slices.items()}
    left = list(stores(lean.nodes))
    #: Loops, and between them the stores that stay.
    found: list[ir.Loop | list[ir.Store]] = []
    while left:
        first, kind = slices[id(left[0])], kinds[id(left[0])]
        possible = [each for each in left if kinds[id(each)] == kind]
        alike = [each for each in possible if _steps(first, slices[id(each)]) is not None]
        loop = None
        if _in_order(lean, alike, slices):
            loop = _loop([slices[id(each)] for each in alike], elements=elements)
        if loop is not None:
            found.append(loop)
        elif found and isinstance(found[-1], list):
            found[-1].append(left[0])
        else:
            found.append([left[0]])
        gone = {id(each) for each in (alike if loop else left[:1])}
        left = [each for each in left if id(each) not in gone]
    if not any(isinstance(each, ir.Loop) for each in found):
        return None
    taken: set[str] = set()
    nodes: list[ir.Node] = []
    for each in found:
        own = slice_of(lean, each).nodes if isinstance(each, list) else (each,)
        nodes += _renamed(program, own, taken)
    rolled = dataclasses.replace(program.after("roll", tuple(nodes)), tensors=lean.tensors)
    # Whether loops write each element once is not known for all of them.
    with contextlib.suppress(VerifyError):
        return verify(rolled)
    return None


def _in_order(program: Program, alike: list[ir.Store], slices: Mapping[int, _Nodes]) -> bool:
    """Whether a loop of stores writes a tensor that is updated in place in the same order.

    They are all of its stores then.
    """
    name = alike[0].view.tensor
    if program.tensor(name).type.role is not Role.INOUT:
        return True
    first = slices[id(alike[0])]
    steps = [_steps(first, slices[id(each)]) or [] for each in alike]
    every = [each for each in stores(program.nodes) if each.view.tensor == name]
    return [*map(id, every)] == [*map(id, alike)] and steps == sorted(steps)


def _slices(program: Program) -> dict[int, _Nodes]:
    """Slices of all stores, with nodes in order of use, by the identity of the store."""
    loops = [each for each in walk(program.nodes) if isinstance(each, ir.Loop)]
    if any(each.carries and any(stores(each.body)) for each in loops):
        every = stores(program.nodes)
        return {id(each): _by_use(slice_of(program, [each]).nodes, ()) for each in every}
    return dict(_of_stores(program.nodes))


def _of_stores(nodes: _Nodes) -> Iterator[tuple[int, _Nodes]]:
    """Slices of the stores of a block and of its loops, none of which carries anything."""
    makers = _makers(nodes)
    for node in nodes:
        if isinstance(node, ir.Store):
            yield id(node), _needed(makers, [node], {})
        elif isinstance(node, ir.Loop):
            for store, body in _of_stores(node.body):
                yield store, _needed(makers, [node], {id(node): node.replace(nodes=body)})


def _by_use(nodes: _Nodes, nexts: tuple[ir.Value, ...]) -> _Nodes:
    """Live nodes of a block, whose loop carries some values, in the order of their uses."""
    makers = _makers(nodes)
    wanted = [each for each in nodes if not each.results or any(stores(each.body))]
    return _needed(makers, [*wanted, *(makers[e.name] for e in nexts if e.name in makers)], {})


def _needed(
    makers: Mapping[str, ir.Node], wanted: Sequence[ir.Node], known: Mapping[int, ir.Node]
) -> _Nodes:
    """Some nodes of a block, or what is known to stand for them, behind those that they need."""
    found: dict[int, ir.Node] = {}

    def need(node: ir.Node) -> None:
        if id(node) in found:
            return
        own = known.get(id(node), node)
        if own is node and isinstance(node, ir.Loop):
            own = node.replace(nodes=_by_use(node.body, node.nexts))
        for each in used(own):
            if each.name in makers:
                need(makers[each.name])
        found[id(node)] = own

    for node in wanted:
        need(node)
    return tuple(found.values())


def _kind(nodes: _Nodes) -> int:
    """A number that is the same for nodes that are; it tells most others from them."""
    parts = []
    for node in walk(nodes):
        numbers = tuple(each for each in node.operands if isinstance(each, ir.Constant))
        view = getattr(node, "view", None)
        parts.append((type(node), getattr(node, "op", ""), numbers, view and view.tensor))
    return hash(tuple(parts))


def _makers(nodes: _Nodes) -> dict[str, ir.Node]:
    return {each.name: node for node in nodes for each in node.results}


def _rolled_tensors(program: Program) -> set[str]:
    """The tensors that loops of pieces access."""
    loops = [each for each in program.nodes if isinstance(each, ir.Loop)]
    pieces = (each for each in loops if variable(each.index) == _PIECE)
    nodes = (node for each in pieces for node in walk(each.body))
    return {view.tensor for node in nodes if (view := getattr(node, "view", None)) is not None}


def _loop(alike: Sequence[_Nodes], *, elements: bool) -> ir.Loop | None:
    """Loops over points for nodes that are the same; None if there are none."""
    first, *others = sorted(alike, key=lambda each: _steps(alike[0], each) or [])
    if not others or not _may_repeat(first, others[0], elements=elements):
        return None
    starts = [_steps(first, each) or [] for each in (first, *others)]
    counts = _counts(starts)
    nodes = first
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


def _may_repeat(first: _Nodes, second: _Nodes, *, elements: bool) -> bool:
    """Whether a piece has products or reductions, and none that another piece has, too.

    It may have neither if it may be element math.
    """
    work = [each for each in walk(first) if isinstance(each, _WORK)]
    known = {value.name for each in walk(second) for value in each.results}
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
    every = list(walk(nodes))
    loops = [each for each in every if isinstance(each, ir.Loop)]
    made = [value for each in every for value in each.results]
    carried = [value for each in loops for value in each.carries]
    names = [each.name for each in (*made, *carried)] + [each.index for each in loops]
    others = taken | set(names)
    new = {}
    for name in names:
        new[name] = unused(name, others) if name in taken else name
        others.add(new[name])
    taken |= others
    moved = {each.index: new[each.index] for each in loops if new[each.index] != each.index}
    symbols = {old: Affine.of(index) for old, index in moved.items()}
    symbols |= {size_symbol(old): Affine.of(size_symbol(index)) for old, index in moved.items()}
    return rename(dataclasses.replace(program, nodes=nodes), new, symbols).nodes


def _steps(one: _Nodes, other: _Nodes) -> _Steps | None:
    """How much further on the views of nodes begin than those of others; None: they differ."""
    match = _Match()
    return match.steps if match.same(one, other) else None


class _Match:
    """Comparison of nodes but for names, places in the source and starts of views."""

    def __init__(self) -> None:
        self.steps: _Steps = []
        self._names: dict[str, str] = {}
        self._others: dict[str, str] = {}

    def same(self, one: Any, other: Any) -> bool:
        """Whether parts of the nodes are the same."""
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
