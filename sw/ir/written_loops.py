"""Loops over points for sums of products that a program writes out term by term.

`acc + X[i + t] @ W[t]` for t = 0, 1, 2, as a `range` of Python records it, is the body of a loop
over points three times: the same product, of loads that lie at equal steps. Such a line of sums
becomes that loop, and so one sum. Sums of other products stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from sw.ir.affine import Affine
from sw.ir.nodes import (
    Constant,
    Full,
    Load,
    Loop,
    Map,
    Matmul,
    Node,
    Transpose,
    Value,
)
from sw.ir.program import Program
from sw.ir.rewrite import Names, unused, used, walk
from sw.ir.types import Role, TileType

__all__ = ["written_loops"]

_T = TypeVar("_T")

#: Loops that a sum of one product has beside its terms (`sw.stages.recognised`).
_MOST_LOOPS = 2

#: Differences of the places that a term loads from those of the first one, axis by axis.
_Steps = tuple[int, ...]


def written_loops(program: Program) -> Program:
    """The program with a loop over points for each line of sums of products at equal steps.

    Parameters
    ----------
    program : Program
        As it is recorded.

    Returns
    -------
    Program
        The same one if it has no such line.
    """
    nodes = _WrittenLoops(program).block(program.nodes, {}, frozenset())
    return program if nodes == program.nodes else dataclasses.replace(program, nodes=nodes)


@dataclasses.dataclass
class _Line:
    """Products that are added to one another, one after the other, and what they are added to."""

    start: Value | None
    terms: list[Matmul]
    #: The additions; the result of the last one is the sum.
    sums: list[Map]


@dataclasses.dataclass(frozen=True)
class _Source:
    """A load, and the transposition of its tile if an operand is that."""

    load: Load
    turning: Transpose | None = None


#: Loaded tiles and their transpositions by name.
_Sources = dict[str, _Source]


class _WrittenLoops:
    def __init__(self, program: Program) -> None:
        self._names = Names(program)
        self._uses = Counter(value.name for node in program.nodes for value in used(node))
        self._given = {each.name for each in program.tensors if each.type.role is Role.IN}
        #: Tensors that are updated in place: their loads stay where they are.
        self._updated = {each.name for each in program.tensors if each.type.role is Role.INOUT}
        self._indices = {each.index for each in walk(program.nodes) if isinstance(each, Loop)}

    def block(
        self, nodes: tuple[Node, ...], sources: _Sources, sums: frozenset[str]
    ) -> tuple[Node, ...]:
        """The nodes of a block.

        Known are the loads of inputs in the blocks around it, and the carries of loops over blocks:
        sums that go on with these are as they are written.
        """
        sources = dict(sources)
        for each in nodes:
            if isinstance(each, Load) and self._joins(each):
                sources[each.result.name] = _Source(each)
            elif isinstance(each, Transpose) and (of := sources.get(each.values[0].name)):
                if of.turning is None:
                    sources[each.result.name] = _Source(of.load, each)
        constant = {
            name: each for name, each in sources.items() if each.load.view.tensor in self._given
        }
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Loop):
                inner = {each.name for each in node.carries} if node.blocks else ()
                body = self.block(node.body, constant, sums.union(inner))
                node = node.replace(nodes=body)
            found.append(node)
        loops: dict[str, list[Node]] = {}
        for line in self._lines(nodes, sources):
            goes_on = line.start is not None and line.start.name in sums
            nest = None if goes_on else _loops_of(line, sources)
            if nest:
                loops[line.sums[-1].result.name] = self._loop(line, sources, *nest)
        return tuple(
            each
            for node in found
            for each in loops.get(node.results[0].name if node.results else "", [node])
        )

    def _joins(self, load: Load) -> bool:
        """Whether several such tiles may be one of a product: matrices that nothing updates."""
        return len(load.view.axes) == 2 and load.view.tensor not in self._updated

    def _lines(self, nodes: tuple[Node, ...], sources: _Sources) -> list[_Line]:
        """All lines of a block; one ends where a product does not resemble those before it."""
        products = {
            each.result.name: each
            for each in nodes
            if isinstance(each, Matmul) and len(each.operands) == 2
        }
        zeros = {each.result.name for each in nodes if _is_zeros(each)}
        made = {value.name: number for number, each in enumerate(nodes) for value in each.results}
        lines: dict[str, _Line] = {}
        for node in nodes:
            if not (isinstance(node, Map) and node.op == "add" and len(node.values) == 2):
                continue
            # Of two products the first one that the program writes is the first term.
            pair = sorted(node.values, key=lambda each: made.get(each.name, -1))
            for before, term in (pair, pair[::-1]):
                product = self._own(products, term)
                if product is None or before.name == term.name or node.result.type != term.type:
                    continue
                line, first = self._own(lines, before), self._own(products, before)
                if line is not None and _steps(line.terms[0], product, sources) is not None:
                    del lines[before.name]
                elif first is not None and _steps(first, product, sources) is not None:
                    line = _Line(None, [first], [])
                else:
                    line = _Line(None if before.name in zeros else before, [], [])
                line.terms.append(product)
                line.sums.append(node)
                lines[node.result.name] = line
                break
        return [each for each in lines.values() if len(each.terms) > 1]

    def _own(self, found: dict[str, _T], value: Value) -> _T | None:
        """What a value is, if nothing else takes it."""
        return found.get(value.name) if self._uses[value.name] == 1 else None

    def _loop(
        self,
        line: _Line,
        sources: _Sources,
        counts: tuple[int, ...],
        strides: tuple[_Steps, ...],
    ) -> list[Node]:
        """Loops over the terms of a line, and the zeros that they start from.

        What has another type than the sum, such as a row, is added behind them.
        """
        last = line.sums[-1]
        kind = last.result.type
        assert isinstance(kind, TileType)
        nodes: list[Node] = []
        start, made = line.start, last.result
        if start is None or start.type != kind:
            made = made if start is None else self._names.fresh(made)
            start = self._names.fresh(last.result)
            number = Constant(0.0 if kind.format.is_float else 0)
            full = Full((), (start,), last.span, number, kind.rows, kind.cols, kind.format)
            nodes.append(full)
        indices = []
        for _ in counts:
            indices.append(unused("t", self._indices))
            self._indices.add(indices[-1])
        carry, total = (self._names.fresh(last.result) for _ in range(2))
        body = self._term(line.terms[0], sources, indices, strides)
        body.append(last.replace(operands=(carry, body[-1].result), results=(total,)))
        for index, count in zip(indices[:0:-1], counts[:0:-1], strict=True):
            given, inner = (self._names.fresh(last.result) for _ in range(2))
            body = [_each(last, index, count, (given, inner), (carry, total), body)]
            carry, total = given, inner
        nodes.append(_each(last, indices[0], counts[0], (start, made), (carry, total), body))
        if made is not last.result:
            assert line.start is not None
            nodes.append(line.sums[0].replace(operands=(line.start, made), results=last.results))
        return nodes

    def _term(
        self,
        term: Matmul,
        sources: _Sources,
        indices: Sequence[str],
        strides: tuple[_Steps, ...],
    ) -> list[Node]:
        """Loads and product of an iteration."""
        places = iter(zip(*strides, strict=True))
        nodes: list[Node] = []
        operands = []
        for value in term.values:
            load, turning = sources[value.name].load, sources[value.name].turning
            entries = []
            for entry, steps in zip(load.view.entries, places, strict=False):
                start = entry.start
                for index, step in zip(indices, steps, strict=True):
                    start += Affine.of(index) * step
                entries.append(dataclasses.replace(entry, start=start))
            view = dataclasses.replace(load.view, entries=tuple(entries))
            value = self._names.fresh(load.result)
            nodes.append(load.replace(results=(value,), view=view))
            if turning is not None:
                turned = self._names.fresh(turning.result)
                nodes.append(turning.replace(operands=(value,), results=(turned,)))
                value = turned
            operands.append(value)
        product = self._names.fresh(term.result)
        return [*nodes, term.replace(operands=tuple(operands), results=(product,))]


def _each(
    node: Node,
    index: str,
    count: int,
    outside: tuple[Value, Value],
    inside: tuple[Value, Value],
    body: list[Node],
) -> Loop:
    """A loop over points that carries a sum: its start and result, its carry and next."""
    (start, result), (carry, total) = outside, inside
    head = "each", index, count, None, None
    return Loop((start,), (result,), node.span, *head, (carry,), tuple(body), (total,))


def _is_zeros(node: Node) -> bool:
    return isinstance(node, Full) and node.value.value == 0


def _loops_of(line: _Line, sources: _Sources) -> tuple[tuple[int, ...], tuple[_Steps, ...]] | None:
    """Points of the loops over the terms of a line, outer ones first, and their steps."""
    steps = [_steps(line.terms[0], each, sources) or () for each in line.terms]
    if not any(map(any, steps)) or min(map(min, steps)) < 0 or not _has_whole_terms(line.terms[0]):
        return None
    nest = _nest(steps)
    return None if nest is None or len(nest[0]) > _MOST_LOOPS else nest


def _has_whole_terms(product: Matmul) -> bool:
    """Whether the terms of several such products are those of one: a fixed, whole number each."""
    kind = product.values[0].type
    assert isinstance(kind, TileType)
    terms = kind.axis(int(not product.ta))
    group = kind.format.products_per_cycle if kind.format.is_float else 1
    return isinstance(terms.size, int) and terms.full and terms.size % group == 0


def _steps(first: Matmul, other: Matmul, sources: _Sources) -> _Steps | None:
    """How far the loads of a product lie from those of the first one; None if it is another."""
    alike = first.replace(operands=other.operands, results=other.results, span=other.span)
    if alike != other or first.result.type != other.result.type:
        return None
    found: list[int] = []
    for one, two in zip(first.values, other.values, strict=True):
        here, there = sources.get(one.name), sources.get(two.name)
        if here is None or there is None or one.type != two.type:
            return None
        near_view, far_view = here.load.view, there.load.view
        turned = here.turning is not None, there.turning is not None
        if near_view.tensor != far_view.tensor or turned[0] != turned[1]:
            return None
        for near, far in zip(near_view.entries, far_view.entries, strict=True):
            step = far.start - near.start
            if step.terms or near.axis != far.axis:
                return None
            found.append(step.constant)
    return tuple(found)


def _nest(steps: Sequence[_Steps]) -> tuple[tuple[int, ...], tuple[_Steps, ...]] | None:
    """Counts and strides of the loops, outer ones first, that take these steps in their order."""
    if len(steps) == 1:
        return (), ()
    stride = _between(steps[0], steps[1])
    run = 2
    while run < len(steps) and _between(steps[run - 1], steps[run]) == stride:
        run += 1
    if len(steps) % run:
        return None
    groups = [steps[each : each + run] for each in range(0, len(steps), run)]
    if any(_between(*each) != stride for group in groups for each in zip(group, group[1:])):
        return None
    outer = _nest([each[0] for each in groups])
    return None if outer is None else ((*outer[0], run), (*outer[1], stride))


def _between(one: _Steps, two: _Steps) -> _Steps:
    return tuple(b - a for a, b in zip(one, two, strict=True))
