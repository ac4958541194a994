"""Pattern recognition of a softmax of whole rows, between two products.

Rows of scores of all keys, less their maximum, have exponentials; these are multiplied by values,
and divided by their sum before the product or behind it. It is recognised by its dataflow, as is a
`RunningSoftmax`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TypeVar

from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16
from hw.numeric.fused_softmax import score_scale
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.language.program_error import ProgramError
from sw.softmax.running_softmax import SoftmaxFinder
from sw.softmax.score_chain import Missed, both_orders, score_chain

__all__ = ["RowSoftmax", "missed_row_softmaxes", "row_softmax_of"]

_Kind = TypeVar("_Kind", bound=ir.Node)


@dataclasses.dataclass(frozen=True)
class RowSoftmax:
    """A softmax of whole rows between two products.

    Parameters
    ----------
    scores : Value
        What the maximum is taken of.
    product : Matmul
        That of queries and keys.
    op : str
        exp or exp2.
    sums : Matmul
        That of exponentials, or of their quotients, and values.
    result : Value
        What it leaves, the quotient.
    """

    scores: ir.Value
    product: ir.Matmul
    op: str
    sums: ir.Matmul
    result: ir.Value


def row_softmax_of(
    node: ir.Node, finder: SoftmaxFinder, beside: tuple[ir.Node, ...]
) -> RowSoftmax | None:
    """The softmax whose last node this is; None if it is none.

    Parameters
    ----------
    node : Node
    finder : SoftmaxFinder
    beside : tuple of Node
        Those of its block: all of the softmax but loads and what hides scores is among them.
    """
    if not isinstance(node, ir.Matmul | ir.Map):
        return None
    match = _Match(finder, node)
    try:
        softmax = match.softmax(node)
    except (Missed, BadInputError):
        return None
    inside = {each.name: each for each in match.inside}
    inner = [each for each in inside.values() if each != node.result]
    users = [user for each in inner for user in finder.users(each)]
    alone = all(user.results and user.results[0].name in inside for user in users)
    here = {each.name for one in beside for each in one.results}
    return softmax if alone and inside.keys() <= here else None


def missed_row_softmaxes(program: Program) -> Iterator[ProgramError]:
    """Why exponentials of scores minus their maximum, between two products, are no softmax."""
    finder = SoftmaxFinder(program)
    for node in walk(program.nodes):
        if isinstance(node, ir.Matmul | ir.Map):
            match = _Match(finder, node)
            try:
                match.softmax(node)
            except Missed as reason:
                if match.scores is not None and _is_of_product(match.scores, finder):
                    yield ProgramError("unserved", str(reason), reason.node.span)
            except BadInputError:
                continue


def _is_of_product(value: ir.Value, finder: SoftmaxFinder) -> bool:
    """Whether a product is among what element math makes a tile of."""
    node = finder.maker(value)
    if not isinstance(node, ir.Map | ir.Cast):
        return isinstance(node, ir.Matmul)
    return any(_is_of_product(each, finder) for each in node.values)


class _Match:
    """A node compared with the last one of a softmax of whole rows.

    Parameters
    ----------
    finder : SoftmaxFinder
    last : Node
    """

    def __init__(self, finder: SoftmaxFinder, last: ir.Node) -> None:
        self._finder = finder
        self._last = last
        #: What exponentials are of, before the maximum is taken away.
        self.scores: ir.Value | None = None
        #: Results of the nodes that only it may use, with the last one.
        self.inside: list[ir.Value] = []

    def softmax(self, node: ir.Matmul | ir.Map) -> RowSoftmax:
        """The softmax whose last node this is.

        Raises
        ------
        Missed
            If it is none.
        BadInputError
            If the scale of the scores is no positive number.
        """
        if isinstance(node, ir.Matmul):
            sums = node
            powers, total = self._quotient(self._rounded(self._factor(sums)))
        else:
            numerator, total = self._quotient(node.result)
            sums = self._made(numerator, ir.Matmul)
            powers = self._rounded(self._factor(sums))
        exponential = self._made(powers, ir.Map, "exp", "exp2")
        scores = self.scores = self._above_maximum(exponential.operands[0])
        self._total(total, powers)
        chain = score_chain(scores, self._finder.makers, node)
        self._between(scores, chain.product)
        base = math.e if exponential.op == "exp" else 2.0
        score_scale(chain.scale * math.log(base))
        if not chain.product.tb or chain.product.ta:
            raise Missed(chain.product, "Scores must be `q @ k.T`")
        return RowSoftmax(scores, chain.product, exponential.op, sums, node.result)

    def _made(self, operand: ir.Operand, kind: type[_Kind], *ops: str) -> _Kind:
        """The node of a tile, of a kind, with one of some operations; only the softmax uses it."""
        node = self._finder.maker(operand)
        if not isinstance(node, kind) or (ops and vars(node)["op"] not in ops):
            raise Missed(node or self._last, f"A softmax of rows has a {kind.__name__} here")
        self.inside.append(node.result)
        return node

    def _factor(self, product: ir.Matmul) -> ir.Operand:
        """First operand of a product that is neither turned nor added to another tile."""
        if product.ta or product.tb or len(product.operands) != 2:
            raise Missed(product, "Exponentials must be multiplied by rows of values")
        self.inside.append(product.result)
        return product.operands[0]

    def _rounded(self, operand: ir.Operand) -> ir.Operand:
        """What a tile is after its last rounding to bf16."""
        node = self._made(operand, ir.Cast)
        return node.operands[0] if node.format == bf16 else self._rounded(node.operands[0])

    def _quotient(self, operand: ir.Operand) -> tuple[ir.Operand, ir.Operand]:
        """Numerator and denominator of a tile."""
        node = self._made(operand, ir.Map, "div", "mul")
        if node.op == "div":
            return node.operands[0], node.operands[1]
        for factor, inverse in both_orders(node.operands):
            if self._finder.operands(inverse, "reciprocal"):
                return factor, self._made(inverse, ir.Map).operands[0]
        raise Missed(node, "A softmax of rows is divided by its sum")

    def _above_maximum(self, operand: ir.Operand) -> ir.Value:
        """Scores of which a tile is what they have less than the maximum of their row."""
        difference = self._finder.difference(operand)
        node = self._made(operand, ir.Map)
        scores, maximum = difference or (None, None)
        reduction = self._finder.maker(maximum) if maximum else None
        if not isinstance(scores, ir.Value) or not isinstance(reduction, ir.Reduce):
            raise Missed(node, "Exponentials of a softmax must be of scores minus their maximum")
        if (reduction.op, reduction.axis, reduction.operands) != ("max", 1, (scores,)):
            raise Missed(reduction, "The maximum must be that of the scores of a row")
        self.inside.append(reduction.result)
        return scores

    def _total(self, operand: ir.Operand, powers: ir.Operand) -> None:
        """Require that a tile is the sum of the exponentials of each row, rounded or not."""
        node = self._finder.maker(operand)
        if isinstance(node, ir.Reduce) and (node.op, node.axis) == ("sum", 1):
            summed = node.operands[0]
        elif isinstance(node, ir.Matmul) and self._is_ones(node.operands[1]):
            summed = self._factor(node)
        else:
            raise Missed(node or self._last, "A softmax of rows is divided by its sum")
        self.inside.append(node.result)
        rounded = isinstance(self._finder.maker(summed), ir.Cast)
        if summed != powers and not (rounded and self._rounded(summed) == powers):
            raise Missed(node, "The sum must be that of the exponentials")

    def _is_ones(self, operand: ir.Operand) -> bool:
        node = self._finder.maker(operand)
        return isinstance(node, ir.Full) and node.value.value == 1 and node.cols.one

    def _between(self, operand: ir.Operand, product: ir.Matmul) -> bool:
        """Whether a tile is made of a product; adds what lies between to the inside."""
        node = self._finder.maker(operand)
        if node is None:
            return False
        # All operands are looked at: several may be made of the product.
        found = [self._between(each, product) for each in node.values if node != product]
        if node == product or any(found):
            self.inside.append(node.result)
            return True
        return False
