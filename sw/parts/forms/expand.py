"""Functions and choices as sequences of unit operations, so that they can be cut."""

from __future__ import annotations

import dataclasses
from typing import Any

from hw.numeric.compositions import SEQUENCES
from hw.numeric.formats import fp32
from sw.ir import nodes as ir
from sw.ir.infer import infer
from sw.ir.program import Program
from sw.ir.rewrite import Names
from sw.ir.types import TileType

__all__ = ["expanded"]


def expanded(program: Program, *, halves: bool = False) -> Program:
    """Replace each such function by its sequence (`hw.numeric.compositions`): the same bits.

    A choice of tiles is first one of 1 and 0. A chip may have too few PCUs for a function, but
    enough for its first half.

    Parameters
    ----------
    program : Program
    halves : bool
        Whether a choice of two tiles is the sum of one for each, which is -0 at the places of the
        other: more operations, and no phase needs both tiles and the condition.
    """
    return dataclasses.replace(program, nodes=_block(program.nodes, Names(program), halves))


def _block(nodes: tuple[ir.Node, ...], names: Names, halves: bool) -> tuple[ir.Node, ...]:
    found: list[ir.Node] = []
    for node in nodes:
        if isinstance(node, ir.Map) and _is_cut(node):
            found += _Sequence(node, names, halves).nodes()
        elif node.body:
            found.append(node.replace(nodes=_block(node.body, names, halves)))
        else:
            found.append(node)
    return tuple(found)


def _is_cut(node: ir.Map) -> bool:
    """Whether an operation is a sequence; a division by a number is one multiplication."""
    if node.op == "where":
        return not all(isinstance(each, ir.Constant) for each in node.operands[1:])
    number = node.op == "div" and isinstance(node.operands[1], ir.Constant)
    return node.op in SEQUENCES and not number


class _Sequence:
    """Unit functions that enter nodes of the IR."""

    def __init__(self, node: ir.Map, names: Names, halves: bool) -> None:
        self._node, self._names, self._halves = node, names, halves
        self._nodes: list[ir.Node] = []

    def nodes(self) -> list[ir.Node]:
        """The nodes, the last of which has the function's result."""
        if self._node.op == "where":
            condition, *others = self._node.operands
            holds = self._map("eq", self._map("where", condition, 1.0, 0.0), 1.0)
            if self._halves and self._is_of_tiles():
                one = self._map("where", holds, others[0], -0.0)
                self.add(one, self._map("where", holds, -0.0, others[1]))
            else:
                self._map("where", holds, *others)
        else:
            operands = [self._float(each) for each in self._node.operands]
            SEQUENCES[self._node.op](self, *operands)
        self._nodes[-1] = self._nodes[-1].replace(results=self._node.results)
        return self._nodes

    def _is_of_tiles(self) -> bool:
        """Whether a choice is one of two tiles of fp32; a sum with -0 is what is added to it."""
        kind = self._node.result.type
        tiles = all(isinstance(each, ir.Value) for each in self._node.operands)
        return tiles and isinstance(kind, TileType) and kind.format == fp32

    def negate(self, a: Any) -> ir.Operand:
        return self._map("neg", a)

    def add(self, a: Any, b: Any) -> ir.Operand:
        return self._map("add", a, b)

    def multiply(self, a: Any, b: Any) -> ir.Operand:
        return self._map("mul", a, b)

    def fma(self, a: Any, b: Any, c: Any) -> ir.Operand:
        return self._map("fma", a, b, c)

    def bits(self, a: Any) -> ir.Operand:
        return self._map("bits", a)

    def select_equal(self, a: Any, b: Any, c: Any, d: Any) -> ir.Operand:
        return self._map("where", self._map("eq", a, b), c, d)

    def select_less(self, a: Any, b: Any, c: Any, d: Any) -> ir.Operand:
        return self._map("where", self._map("lt", a, b), c, d)

    def exp(self, a: Any) -> ir.Operand:
        return self._map("exp", a)

    def exp2(self, a: Any) -> ir.Operand:
        return self._map("exp2", a)

    def reciprocal(self, a: Any) -> ir.Operand:
        return self._map("reciprocal", a)

    def rsqrt(self, a: Any) -> ir.Operand:
        return self._map("rsqrt", a)

    def _float(self, operand: ir.Operand) -> ir.Operand:
        """An operand as fp32 if it is whole: operations on int32 would be others."""
        if not isinstance(operand, ir.Value):
            return ir.Constant(float(operand.value))
        if isinstance(operand.type, TileType) and operand.type.format.is_float:
            return operand
        return self._enter(ir.Cast((operand,), (), self._node.span, format=fp32))

    def _map(self, op: str, *operands: Any) -> ir.Operand:
        numbers = tuple(
            each if isinstance(each, ir.Value | ir.Constant) else ir.Constant(float(each))
            for each in operands
        )
        return self._enter(ir.Map(numbers, (), self._node.span, op=op))

    def _enter(self, node: ir.Node) -> ir.Value:
        (type_,) = infer(node, {})
        assert isinstance(type_, TileType)
        result = self._names.fresh(self._node.result, type_)
        self._nodes.append(node.replace(results=(result,)))
        return result
