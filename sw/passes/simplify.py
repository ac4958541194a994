"""simplify: remove identity nodes and hoist loop-invariant loads.

Folds transposes into products and loads into gathers of their rows, removes casts without effect
and dead nodes, merges equal nodes (common subexpressions), and moves loads of inputs out of the
loops they do not depend on. No result changes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import replaced, same_nodes, walk
from sw.ir.types import Role, TokenType
from sw.ir.verify import verify

__all__ = ["live", "simplified", "simplify"]

_PURE = {
    *(ir.Load, ir.Gather, ir.Matmul, ir.Map, ir.Reduce, ir.Full, ir.Iota, ir.Cast),
    *(ir.Columns, ir.Join, ir.Take, ir.Transpose, ir.Mask, ir.Buffer, ir.Powers, ir.Rescale),
}


def simplify(program: Program) -> Program:
    """Simplify a program."""
    return verify(program.after("simplify", simplified(program)))


def simplified(program: Program) -> tuple[ir.Node, ...]:
    """The simplified nodes of a program."""
    read_only = {each.name for each in program.tensors if each.type.role is Role.IN}
    nodes = _Replacer(read_only).block(program.nodes, {})
    nodes = _hoist_all(nodes, read_only)
    # Loads that left different loops may have become equal.
    nodes = _Replacer(read_only).block(nodes, {})
    return live(nodes)


def live(nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
    """The nodes without dead ones, dead carries and empty loops."""
    return _live(nodes, _needed(nodes))


def _fixed(node: ir.Node, read_only: set[str]) -> bool:
    """Return whether a node has the same result at any point where its operands are defined."""
    if type(node) not in _PURE or any(isinstance(each.type, TokenType) for each in node.values):
        return False
    view = getattr(node, "view", None)
    return view is None or view.tensor in read_only


class _Replacer:
    """Folding of views and casts, and elimination of common subexpressions."""

    def __init__(self, read_only: set[str]) -> None:
        self._read_only = read_only
        self._values: dict[str, ir.Operand] = {}
        self._makers: dict[str, ir.Node] = {}

    def block(
        self, nodes: tuple[ir.Node, ...], seen: dict[object, tuple[ir.Value, ...]]
    ) -> tuple[ir.Node, ...]:
        seen = dict(seen)
        found: list[ir.Node] = []
        for node in nodes:
            operands = tuple(replaced(self._values, each) for each in node.operands)
            if operands != node.operands:
                node = node.replace(operands=operands)
            if isinstance(node, ir.Loop):
                nodes = self.block(node.body, seen)
                nexts = tuple(replaced(self._values, each) for each in node.nexts)
                if nodes is not node.body or nexts != node.nexts:
                    node = node.replace(nodes=nodes, nexts=nexts)
            node = self._fold(node)
            key = self._key(node)
            if self._forward(node):
                continue
            if key is not None and key in seen:
                self._values.update(zip((each.name for each in node.results), seen[key]))
                continue
            if key is not None:
                seen[key] = node.results
            self._makers.update((each.name, node) for each in node.results)
            found.append(node)
        return same_nodes(nodes, found)

    def _key(self, node: ir.Node) -> object | None:
        """Key that is equal for nodes with equal results; buffers are never merged."""
        if not _fixed(node, self._read_only) or isinstance(node, ir.Buffer):
            return None
        skipped = ("results", "span")
        return (
            type(node),
            *(getattr(node, each.name) for each in fields(node) if each.name not in skipped),
        )

    def _maker(self, operand: ir.Operand) -> ir.Node | None:
        return self._makers.get(operand.name) if isinstance(operand, ir.Value) else None

    def _fold(self, node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Take):
            return self._from_memory(node)
        if not isinstance(node, ir.Matmul):
            return node
        changes: dict[str, Any] = {}
        operands = list(node.operands)
        for number, flag in enumerate(("ta", "tb")):
            maker = self._maker(operands[number])
            if isinstance(maker, ir.Transpose):
                operands[number] = maker.operands[0]
                changes[flag] = not getattr(node, flag)
        return node.replace(operands=tuple(operands), **changes) if changes else node

    def _from_memory(self, node: ir.Take) -> ir.Node:
        """Rows of a tile that is loaded for them, as rows of the tensor."""
        maker = self._maker(node.operands[0])
        if not isinstance(maker, ir.Load) or len(maker.view.axes) != 2:
            return node
        if not _fixed(maker, self._read_only):
            return node
        return ir.Gather(node.operands[1:], node.results, node.span, maker.view)

    def _forward(self, node: ir.Node) -> bool:
        """Replace the result of an identity node by its operand."""
        if not isinstance(node, ir.Cast | ir.Transpose):
            return False
        source: ir.Operand = node.operands[0]
        if isinstance(node, ir.Cast) and node.values[0].type != node.result.type:
            return False
        if isinstance(node, ir.Transpose):
            maker = self._maker(source)
            if not isinstance(maker, ir.Transpose):
                return False
            source = maker.operands[0]
        self._values[node.result.name] = source
        return True


def _hoist_all(nodes: tuple[ir.Node, ...], read_only: set[str]) -> tuple[ir.Node, ...]:
    """Hoist loads of inputs and constant tiles out of the loops they do not depend on."""
    found: list[ir.Node] = []
    for node in nodes:
        if isinstance(node, ir.Loop):
            stay = []
            for each in _hoist_all(node.body, read_only):
                free = isinstance(each, ir.Load | ir.Full) and _fixed(each, read_only)
                if free and not each.values and node.index not in each.symbols:
                    found.append(each)
                else:
                    stay.append(each)
            body = same_nodes(node.body, stay)
            node = node if body is node.body else node.replace(nodes=body)
        found.append(node)
    return same_nodes(nodes, found)


def _needed(nodes: tuple[ir.Node, ...]) -> set[str]:
    """Names of the live values: those that a node with an effect depends on."""
    makers: dict[str, tuple[ir.Operand, ...]] = {}
    wanted: list[str] = []
    for node in walk(nodes):
        if isinstance(node, ir.Loop):
            for carry, result, start, last in zip(
                node.carries, node.results, node.operands, node.nexts
            ):
                makers[carry.name] = (start, last)
                makers[result.name] = (carry,)
        elif type(node) in _PURE:
            for each in node.results:
                makers[each.name] = node.operands
        else:
            wanted += [each.name for each in node.values]
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted += [each.name for each in makers.get(name, ()) if isinstance(each, ir.Value)]
    return needed


def _live(nodes: tuple[ir.Node, ...], needed: set[str]) -> tuple[ir.Node, ...]:
    """Remove dead nodes, dead carries and empty loops."""
    found: list[ir.Node] = []
    for node in nodes:
        if isinstance(node, ir.Loop):
            kept = [n for n, carry in enumerate(node.carries) if carry.name in needed]
            body = _live(node.body, needed)
            if len(kept) < len(node.carries) or body is not node.body:
                node = node.replace(
                    operands=tuple(node.operands[n] for n in kept),
                    results=tuple(node.results[n] for n in kept),
                    carries=tuple(node.carries[n] for n in kept),
                    nexts=tuple(node.nexts[n] for n in kept),
                    nodes=body,
                )
            if not node.body and not node.results:
                continue
        elif type(node) in _PURE and needed.isdisjoint([each.name for each in node.results]):
            continue
        found.append(node)
    return same_nodes(nodes, found)
