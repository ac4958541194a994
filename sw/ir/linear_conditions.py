"""Tiles of numbers that are linear in their row and column, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sw.ir import nodes as ir
from sw.ir.affine import Affine

__all__ = ["Linear", "seen_where"]

#: Comparisons that hold where others do not, and those of the operands the other way round.
_OPPOSITES = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}
_TURNED = {"ge": "le", "gt": "lt"}


@dataclass(frozen=True)
class Linear:
    """Integer tile whose element at row r and column c is ``rows·r + columns·c + base``.

    Parameters
    ----------
    rows, columns : int
    base : Affine
    """

    rows: int
    columns: int
    base: Affine

    def __add__(self, other: Linear) -> Linear:
        return Linear(self.rows + other.rows, self.columns + other.columns, self.base + other.base)

    def __mul__(self, factor: int) -> Linear:
        return Linear(self.rows * factor, self.columns * factor, self.base * factor)


def seen_where(
    value: ir.Value, makers: Mapping[str, ir.Node], *, holds: bool
) -> tuple[Linear, ...]:
    """Linear tiles that are all 0 or more exactly where a condition holds, or where it does not.

    Parameters
    ----------
    value : Value
        The condition: a comparison of linear tiles, one of which may be the absolute value of one.
    makers : mapping of str to Node
        The node of each value.
    holds : bool

    Returns
    -------
    tuple of Linear
        Nothing if it is no such comparison.
    """
    node = makers.get(value.name)
    if not isinstance(node, ir.Map) or node.op not in _OPPOSITES:
        return ()
    op = node.op if holds else _OPPOSITES[node.op]
    less, more = node.operands
    if op in _TURNED:
        op, less, more = _TURNED[op], more, less
    maker = makers.get(less.name) if isinstance(less, ir.Value) else None
    absolute = isinstance(maker, ir.Map) and maker.op == "abs"
    left = _linear(maker.operands[0] if absolute and maker else less, makers)
    limit = _linear(more, makers)
    if left is None or limit is None:
        return ()
    limit += Linear(0, 0, Affine((), -1 if op == "lt" else 0))
    # |x| <= y is x <= y and -x <= y.
    return tuple(limit + left * -sign for sign in ((1, -1) if absolute else (1,)))


def _linear(operand: ir.Operand, makers: Mapping[str, ir.Node]) -> Linear | None:
    if isinstance(operand, ir.Constant):
        return _number(operand)
    match makers.get(operand.name):
        case ir.Iota() as node:
            return Linear(1 - node.axis, node.axis, node.start)
        case ir.Full() as node:
            return _number(node.value)
        case ir.Buffer() as node:
            return _linear(node.operands[0], makers)
        case ir.Map(op="neg") as node:
            found = _linear(node.operands[0], makers)
            return found and found * -1
        case ir.Map(op="add" | "sub" | "mul") as node:
            left, right = (_linear(each, makers) for each in node.operands)
            if left is None or right is None:
                return None
            if node.op != "mul":
                return left + right * (1 if node.op == "add" else -1)
            for number, other in ((left, right), (right, left)):
                if not (number.rows or number.columns or number.base.terms):
                    return other * number.base.constant
    return None


def _number(constant: ir.Constant) -> Linear | None:
    whole = isinstance(constant.value, int)
    return Linear(0, 0, Affine((), int(constant.value))) if whole else None
