"""Known contents of tile tails, the elements beyond the extents."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sw.ir import nodes as ir
from sw.ir.affine import Affine
from sw.ir.format_rules import Format
from sw.ir.types import Tensor, TileType, View

__all__ = ["Tails", "identity"]


def identity(op: str, format_: Format) -> ir.Constant:
    """Return the identity element of a reduction in this format."""
    if op == "sum":
        return ir.Constant(0)
    sign = -1 if op == "max" else 1
    if format_.is_float:
        return ir.Constant(sign * math.inf)
    return ir.Constant(-(1 << (format_.bits - 1)) if sign < 0 else (1 << (format_.bits - 1)) - 1)


class Tails:
    """Numbers known to fill the tails of values, collected node by node.

    The tail along an axis is the elements beyond its extent and within that of the other axis. A
    load reads zeros beyond its tensor, but not beyond a bound inside the tensor.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        Tensors of the program.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        self._known: dict[str, tuple[float | None, float | None]] = {}

    def _get(self, operand: ir.Operand) -> tuple[float | None, float | None]:
        if isinstance(operand, ir.Constant):
            return operand.value, operand.value
        return self._known.get(operand.name, (None, None))

    def of(self, operand: ir.Operand, axis: int) -> float | None:
        """Return the number that fills the tail along an axis; None if unknown."""
        return self._get(operand)[axis]

    def _load(self, view: View) -> tuple[float | None, float | None]:
        found: list[float | None] = []
        for entry, dim in zip(view.entries, self._tensors[view.tensor].type.dims):
            if entry.axis is not None:
                end = Affine((), dim.size) - entry.start
                found.append(0 if entry.axis.rests == (end,) else None)
        padded = [None] * (2 - len(found)) + found
        return padded[0], padded[1]

    def note(self, node: ir.Node) -> None:
        """Record the tails of a node's results; its operands must have been recorded."""
        known: tuple[float | None, float | None] = (None, None)
        match node:
            case ir.Load():
                known = self._load(node.view)
            case ir.Full():
                known = (node.value.value, node.value.value)
            case ir.Buffer():
                known = self._get(node.operands[0])
            case ir.Transpose():
                rows, cols = self._get(node.operands[0])
                known = (cols, rows)
            case ir.Mask():
                before = self._get(node.operands[0])
                number = node.identity.value
                known = (number, before[1]) if node.axis == 0 else (before[0], number)
            case ir.Cast():
                # A rounded number is another; zero and the infinities survive every cast.
                rows, cols = self._get(node.operands[0])
                known = (_unchanged(rows), _unchanged(cols))
            case ir.Powers():
                # 2^-inf is 0.
                hidden = self.of(node.operands[0], 1) == -math.inf
                self._known[node.results[2].name] = (None, 0 if hidden else None)
                return
        for each in node.results:
            self._known[each.name] = known

    def missing(self, node: ir.Node) -> tuple[tuple[int, int, ir.Constant], ...]:
        """Return the masks that a node needs: operand, axis and identity element of each."""
        needs: list[tuple[int, int, ir.Constant]] = []
        if isinstance(node, ir.Matmul):
            # 0 times infinity is NaN: both operands must be zero beyond their extents.
            zero = ir.Constant(0)
            needs = [(0, 0 if node.ta else 1, zero), (1, 1 if node.tb else 0, zero)]
        elif isinstance(node, ir.Reduce) and isinstance(node.values[0].type, TileType):
            needs = [(0, node.axis, identity(node.op, node.values[0].type.format))]
        elif isinstance(node, ir.Powers):
            needs = [(0, 1, ir.Constant(-math.inf))]
        found = []
        for operand, axis, number in needs:
            kind = node.values[operand].type
            if isinstance(kind, TileType) and not kind.axis(axis).full:
                if self.of(node.operands[operand], axis) != number.value:
                    found.append((operand, axis, number))
        return tuple(found)


def _unchanged(number: float | None) -> float | None:
    return number if number == 0 or (number is not None and math.isinf(number)) else None
