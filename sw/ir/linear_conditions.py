"""Tiles of numbers that are linear in their row and column, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sw.ir import nodes as ir
from sw.ir.affine import Affine

__all__ = ["Linear", "condition_of", "seen_where"]

#: Comparisons as (sign of left - right, constant added) so that the result is at least 0.
_COMPARISONS = {"ge": (1, 0), "gt": (1, -1), "le": (-1, 0), "lt": (-1, -1)}


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


def condition_of(value: ir.Operand, makers: Mapping[str, ir.Node]) -> Linear | None:
    """Linear tile that is 0 or more exactly where a condition holds.

    Parameters
    ----------
    value : Operand
        The condition.
    makers : mapping of str to Node
        The node of each value.

    Returns
    -------
    Linear or None
        None if it is no such comparison.
    """
    node = makers.get(value.name) if isinstance(value, ir.Value) else None
    if not isinstance(node, ir.Map) or node.op not in _COMPARISONS:
        return None
    sign, constant = _COMPARISONS[node.op]
    left, right = (_linear(each, makers) for each in node.operands)
    if left is None or right is None:
        return None
    return (left + right * -1) * sign + Linear(0, 0, Affine((), constant))


def seen_where(value: ir.Value, makers: Mapping[str, ir.Node], *, holds: bool) -> Linear | None:
    """Linear tile that is 0 or more exactly where a condition holds, or where it does not.

    Parameters
    ----------
    value, makers
        As of `condition_of`.
    holds : bool
    """
    found = condition_of(value, makers)
    if found is None or holds:
        return found
    # Not x >= 0 is -x - 1 >= 0.
    return found * -1 + Linear(0, 0, Affine((), -1))


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
