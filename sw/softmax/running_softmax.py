"""Pattern recognition of a softmax over blocks: a loop that carries a maximum and two sums.

The loop carries the running maximum m of rows of scores, the sum l of their exponentials, and the
sum o of the exponentials times rows of another tile. It is recognised by its dataflow, whatever
the names, the order of operations and of operands.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import NamedTuple

from hw.numeric.formats import bf16
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import used, walk
from sw.ir.types import TileType
from sw.softmax.score_chain import Missed, ScoreChain, both_orders, score_chain

__all__ = ["RunningSoftmax", "SoftmaxFinder"]

#: Greatest number that a running maximum may start with, other than -inf.
_LEAST_START = -(2.0**20)
_NOT_SCALED = "The sum of products must be scaled by the fade of the maximum"


@dataclasses.dataclass(frozen=True)
class RunningSoftmax:
    """A loop that computes a softmax over blocks, and its parts.

    Parameters
    ----------
    loop : Loop
    maximum, total, sums : int
        Positions of m, l and o among the carries.
    chain : ScoreChain
        How the scores are made.
    scale : float
        Factor of the scores, in the domain of e.
    product : Matmul
        The product of o.
    powers, fade : Value
        The exponentials of the scores, and of the change of m.
    """

    loop: ir.Loop
    maximum: int
    total: int
    sums: int
    chain: ScoreChain
    scale: float
    product: ir.Matmul
    powers: ir.Value
    fade: ir.Value


class _Exponential(NamedTuple):
    """exp or exp2 of a difference."""

    node: ir.Map
    plus: ir.Operand
    minus: ir.Operand


class SoftmaxFinder:
    """Finder of softmaxes over blocks in a program.

    Parameters
    ----------
    program : Program
        After `accumulate` and `simplify`.
    """

    def __init__(self, program: Program) -> None:
        self.makers: dict[str, ir.Node] = {}
        self._users: dict[str, list[ir.Node]] = defaultdict(list)
        for node in walk(program.nodes):
            self.makers.update((each.name, node) for each in node.results)
            for value in node.values:
                self._users[value.name].append(node)
            for value in node.nexts if isinstance(node, ir.Loop) else ():
                self._users[value.name].append(node)

    def find(self, node: ir.Node) -> RunningSoftmax | None:
        """The softmax that a loop computes; None if it has no running maximum of exponentials.

        Raises
        ------
        Missed
            If it has one and is no such softmax.
        """
        if not isinstance(node, ir.Loop) or not node.blocks:
            return None
        inside = list(walk(node.body))
        kinds = {each.op for each in inside if isinstance(each, ir.Map)}
        if not kinds & {"exp", "exp2"} or not any(isinstance(x, ir.Matmul) for x in inside):
            return None
        for position, (carry, new) in enumerate(zip(node.carries, node.nexts)):
            reduction = self._maximum(carry, new)
            if reduction is not None:
                return _Match(self, node, position, reduction).found()
        return None

    def maker(self, operand: ir.Operand) -> ir.Node | None:
        return self.makers.get(operand.name) if isinstance(operand, ir.Value) else None

    def users(self, value: ir.Value) -> list[ir.Node]:
        return self._users[value.name]

    def _maximum(self, carry: ir.Value, new: ir.Value) -> ir.Reduce | None:
        """The reduction of a maximum that is carried."""
        node = self.maker(new)
        if isinstance(node, ir.Map) and node.op == "max":
            for old, other in (node.operands, node.operands[::-1]):
                reduction = self.maker(other)
                if old == carry and isinstance(reduction, ir.Reduce):
                    if (reduction.op, reduction.axis) == ("max", 1):
                        return reduction
        return None

    def operands(self, operand: ir.Operand, op: str) -> tuple[ir.Operand, ...]:
        """Operands of the operation that makes a tile; none if it is another operation."""
        node = self.maker(operand)
        return node.operands if isinstance(node, ir.Map) and node.op == op else ()

    def difference(self, operand: ir.Operand) -> tuple[ir.Operand, ir.Operand] | None:
        """a and b of a - b, of a + (-b) and of -(b - a)."""
        if found := self.operands(operand, "sub"):
            return found[0], found[1]
        if found := self.operands(operand, "neg"):
            inner = self.difference(found[0])
            return inner and inner[::-1]
        if found := self.operands(operand, "add"):
            for plus, other in (found, found[::-1]):
                if minus := self.operands(other, "neg"):
                    return plus, minus[0]
        return None


class _Match:
    """One loop with a running maximum, compared with the pattern.

    Parameters
    ----------
    finder : SoftmaxFinder
    loop : Loop
    maximum : int
        Position of m among the carries.
    reduction : Reduce
        The maximum of a block of scores.
    """

    def __init__(
        self, finder: SoftmaxFinder, loop: ir.Loop, maximum: int, reduction: ir.Reduce
    ) -> None:
        self._finder, self._loop, self._maximum = finder, loop, maximum
        self._old, self._new = loop.carries[maximum], loop.nexts[maximum]
        self._masked = reduction.values[0]
        self._reduction = reduction
        exponentials = [
            _Exponential(node, *difference)
            for node in loop.body
            if isinstance(node, ir.Map) and node.op in ("exp", "exp2")
            if (difference := finder.difference(node.operands[0])) is not None
        ]
        self._powers = self._exponential(exponentials, self._masked, "the scores")
        self._fade = self._exponential(exponentials, self._old, "the maximum before")
        name = self._powers.op
        if self._fade.op != name:
            raise Missed(self._fade, f"`{name}` of the scores goes with `{name}` of the maxima")
        self._base = math.e if name == "exp" else 2.0

    def _exponential(self, exponentials: list[_Exponential], plus: ir.Operand, noun: str) -> ir.Map:
        for each in exponentials:
            if each.plus == plus and each.minus == self._new:
                return each.node
        raise Missed(
            self._reduction, f"A running maximum goes with the exponential of {noun} minus it"
        )

    def found(self) -> RunningSoftmax:
        loop = self._loop
        if len(loop.carries) != 3:
            given = f"not {len(loop.carries)} tiles"
            raise Missed(loop, f"A softmax over blocks carries a maximum and two sums, {given}")
        total, sums = (each for each in range(3) if each != self._maximum)
        if not self._is_total(total):
            total, sums = sums, total
        if not self._is_total(total):
            rule = "The sum of exponentials must be `l * fade + tw.row_sum(p)`"
            raise Missed(self._maker(loop.nexts[total]), rule)
        product = self._sums(sums)
        chain = score_chain(self._masked, self._finder.makers, loop)
        self._starts(total, sums)
        self._quotient(total, sums)
        self._require_alone()
        return RunningSoftmax(
            loop=loop,
            maximum=self._maximum,
            total=total,
            sums=sums,
            chain=chain,
            scale=chain.scale * math.log(self._base),
            product=product,
            powers=self._powers.result,
            fade=self._fade.result,
        )

    def _maker(self, value: ir.Operand) -> ir.Node:
        return self._finder.maker(value) or self._loop

    def _faded(self, operand: ir.Operand, position: int) -> bool:
        """Whether a tile is a carry times the fade."""
        factors = self._finder.operands(operand, "mul")
        wanted = (self._loop.carries[position], self._fade.result)
        return factors in (wanted, wanted[::-1])

    def _rounded(self, operand: ir.Operand) -> bool:
        """Whether a tile is the exponentials of the scores in bf16, widened or not."""
        node = self._finder.maker(operand)
        while isinstance(node, ir.Cast):
            source = node.values[0]
            if node.format == bf16 and source == self._powers.result:
                return True
            node = self._finder.maker(source)
        return False

    def _is_total(self, position: int) -> bool:
        """Whether a carry is l."""
        new = self._loop.nexts[position]
        for faded, added in both_orders(self._finder.operands(new, "add")):
            node = self._finder.maker(added)
            if not self._faded(faded, position):
                continue
            if isinstance(node, ir.Reduce):
                source = node.values[0]
                counts = source == self._powers.result or self._rounded(source)
                if counts and (node.op, node.axis) == ("sum", 1):
                    return True
            if isinstance(node, ir.Matmul) and not node.ta and self._rounded(node.operands[0]):
                ones, type_ = self._finder.maker(node.operands[1]), node.result.type
                assert isinstance(type_, TileType)
                if isinstance(ones, ir.Full) and ones.value.value == 1 and type_.cols.one:
                    return True
        return False

    def _sums(self, position: int) -> ir.Matmul:
        new = self._loop.nexts[position]
        for scaled, added in both_orders(self._finder.operands(new, "add")):
            node = self._finder.maker(added)
            if not isinstance(node, ir.Matmul) or len(node.operands) != 2 or node.ta:
                continue
            if not self._faded(scaled, position):
                raise Missed(node, _NOT_SCALED)
            if not self._rounded(node.operands[0]):
                rule = "The exponentials must be multiplied in bf16: `p.to(tw.bf16) @ v`"
                raise Missed(node, rule)
            return node
        made = self._maker(new)
        if isinstance(made, ir.Matmul) and len(made.operands) == 3:
            raise Missed(made, _NOT_SCALED)
        raise Missed(made, "The sum of products must be `o * fade + p.to(tw.bf16) @ v`")

    def _starts(self, total: int, sums: int) -> None:
        for position in (total, sums):
            if self._start(position) != 0:
                raise Missed(self._loop, "The sums of a softmax over blocks must start from zeros")
        number = self._start(self._maximum)
        if number is None or number > _LEAST_START:
            raise Missed(
                self._loop, "A running maximum must start from -inf, or from at most -2^20"
            )

    def _start(self, position: int) -> float | None:
        node = self._finder.maker(self._loop.operands[position])
        while isinstance(node, ir.Cast | ir.Buffer):
            node = self._finder.maker(node.operands[0])
        return node.value.value if isinstance(node, ir.Full) else None

    def _quotient(self, total: int, sums: int) -> None:
        """Require that sums leave the loop as their quotient alone."""
        top, denominator, numerator = (
            self._loop.results[each] for each in (self._maximum, total, sums)
        )
        users = self._finder.users
        for value, most in ((top, 0), (denominator, 1), (numerator, 1)):
            for node in users(value)[most:]:
                raise Missed(node, "A softmax over blocks must leave its loop as `o / l` alone")
        for node in users(numerator):
            if isinstance(node, ir.Map):
                if node.op == "div" and node.operands == (numerator, denominator):
                    return
                for first, second in both_orders(node.operands) if node.op == "mul" else ():
                    if first == numerator and self._inverse(second, denominator):
                        return
            raise Missed(node, "A softmax over blocks must leave its loop as `o / l` alone")

    def _inverse(self, operand: ir.Operand, denominator: ir.Value) -> bool:
        found = self._finder.operands(operand, "reciprocal") == (denominator,)
        return found and isinstance(operand, ir.Value) and len(self._finder.users(operand)) == 1

    def _require_alone(self) -> None:
        """Require that what depends on a carry leads to the next carries, and nowhere else."""
        body = self._loop.body
        wanted = {each.name for each in self._loop.nexts}
        for node in reversed(body):
            if any(each.name in wanted for each in node.results):
                wanted |= {each.name for each in used(node)}
        changed = {each.name for each in self._loop.carries}
        for node in body:
            if any(each.name in changed for each in used(node)):
                changed |= {each.name for each in node.results}
                if not any(each.name in wanted for each in node.results):
                    raise Missed(
                        node,
                        "The maximum, exponentials and sums of a softmax over blocks must be used "
                        "in it alone",
                    )
