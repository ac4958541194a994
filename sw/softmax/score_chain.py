"""How scores are made of a product: times a number, and -inf where a condition hides them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple

from sw.ir import nodes as ir

__all__ = ["Hidden", "Missed", "ScoreChain", "both_orders", "hiding", "score_chain"]


class Missed(Exception):
    """A loop with a running maximum that is not a softmax over blocks.

    Parameters
    ----------
    node : Node
        The node at fault.
    message : str
        What must hold.
    """

    def __init__(self, node: ir.Node, message: str) -> None:
        super().__init__(message)
        self.node = node


class Hidden(NamedTuple):
    """Scores that are -inf.

    Members
    -------
    condition : Value
    holds : bool
        Whether those are hidden where the condition holds, or where it does not.
    node : Node
        The node that hides them.
    """

    condition: ir.Value
    holds: bool
    node: ir.Node


@dataclasses.dataclass(frozen=True)
class ScoreChain:
    """How scores are made.

    Parameters
    ----------
    product : Matmul
        The product that they are made of.
    scale : float
        Their factor.
    scaling : Node
        The node of the factor, else the product.
    hidden : tuple of Hidden
        What hides scores, in order.
    """

    product: ir.Matmul
    scale: float
    scaling: ir.Node
    hidden: tuple[Hidden, ...]


def both_orders(operands: tuple[ir.Operand, ...]) -> tuple[tuple[ir.Operand, ...], ...]:
    """Operands in both orders; nothing of no operands."""
    return (operands, operands[::-1]) if operands else ()


def score_chain(scores: ir.Value, makers: Mapping[str, ir.Node], loop: ir.Node) -> ScoreChain:
    """How scores are made, from the last operation back to the product.

    Parameters
    ----------
    scores : Value
    makers : mapping of str to Node
        The node of each value.
    loop : Node
        The loop around them, for an error.

    Raises
    ------
    Missed
        If they are made by other operations.
    """
    value: ir.Operand = scores
    scale, scaling = 1.0, None
    hidden: list[Hidden] = []
    while True:
        node = makers.get(value.name, loop) if isinstance(value, ir.Value) else loop
        if isinstance(node, ir.Matmul) and len(node.operands) == 2:
            return ScoreChain(node, scale, scaling or node, tuple(hidden))
        if found := _scaled(node):
            value, factor = found
            scale, scaling = scale * factor, node
        elif step := hiding(node, makers):
            value = step[0]
            hidden.insert(0, step[1])
        else:
            rule = "Scores must be a product, times a number, with -inf where keys are hidden"
            raise Missed(node, rule)


def _scaled(node: ir.Node) -> tuple[ir.Operand, float] | None:
    """A tile and the number by which it is multiplied."""
    if not isinstance(node, ir.Map):
        return None
    if node.op == "neg":
        return node.operands[0], -1.0
    for x, factor in both_orders(node.operands) if node.op == "mul" else ():
        if isinstance(factor, ir.Constant):
            return x, float(factor.value)
    if node.op == "div" and isinstance(node.operands[1], ir.Constant):
        number = float(node.operands[1].value)
        return node.operands[0], 1 / number if number else math.inf
    return None


def hiding(node: ir.Node, makers: Mapping[str, ir.Node]) -> tuple[ir.Operand, Hidden] | None:
    """A tile and what a node hides of it: `where(c, x, -inf)`, and x + `where(c, 0, -inf)`."""
    if not isinstance(node, ir.Map):
        return None
    if node.op == "where":
        return _branches(node, node)
    for x, mask in both_orders(node.operands) if node.op == "add" else ():
        maker = makers.get(mask.name) if isinstance(mask, ir.Value) else None
        if isinstance(maker, ir.Map) and maker.op == "where":
            found = _branches(maker, node)
            if found is not None and isinstance(found[0], ir.Constant) and found[0].value == 0:
                return x, found[1]
    return None


def _branches(where: ir.Map, node: ir.Node) -> tuple[ir.Operand, Hidden] | None:
    condition, first, second = where.operands
    assert isinstance(condition, ir.Value)
    for kept, other, holds in ((first, second, False), (second, first, True)):
        if isinstance(other, ir.Constant) and other.value == -math.inf:
            return kept, Hidden(condition, holds, node)
    return None
