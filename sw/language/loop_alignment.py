"""Detection of loop-carried tiles by aligning the recordings of a loop body.

All passes run with the same index, so whatever is equal in all iterations is equal in all passes.
An operand is one of these:

- the same outer value in all passes, or the corresponding value of each pass: used as it is;
- outer value *p* in the first pass, then value *q* of the pass before: a carry that starts as *p*
  and continues as *q*;
- outer values *p* and *o* in the first two passes, then value *q* of the pass before the last: two
  carries, one that starts as *o* and continues as *q*, and one that starts as *p* and continues as
  a copy of the other at the iteration's entry; and so for longer lags;
- anything else: state that cannot be told from a mistake, and is refused.

Each use is decided separately, so two names may start as the same tile. The last pass is kept,
because its types are those of every later iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any

from sw.ir.nodes import Buffer, Constant, Loop, Node, Operand, Value
from sw.ir.rewrite import walk
from sw.ir.types import Span, Type

__all__ = ["Aligned", "Carry", "MismatchError", "align", "describe", "made_by"]

_NOT_ATTRIBUTES = ("operands", "results", "span", "nodes", "carries", "nexts")


@dataclass(frozen=True)
class Carry:
    """A loop-carried tile.

    Parameters
    ----------
    start : Value
        Value before the loop.
    entry : Value
        Value at the entry of an iteration.
    first, next : Value
        Value for the next iteration, as recorded in the first and in the last pass.
    made : Value
        Tile of the program that the result of this carry is: made in the last pass, or one pass
        earlier for each iteration that the carry lags further.
    lag : int
        Iterations from where the tile is made to where it is read, at least 1.
    """

    start: Value
    entry: Value
    first: Value
    next: Value
    made: Value
    lag: int


@dataclass(frozen=True)
class Aligned:
    """An aligned loop body, valid for all iterations, with its carries."""

    carries: tuple[Carry, ...]
    nodes: tuple[Node, ...]


class MismatchError(Exception):
    """Recordings that differ in something other than carried tiles.

    Parameters
    ----------
    reason : str
        ``different``: different operations or numbers. ``outer``: outer tiles that differ and no
        tile of the loop after them. ``stale``: a tile of an earlier pass where the first pass reads
        its own. ``turn``: a tile from outside the loop in one pass, from inside in another.
    first, second : Node or None
        The first nodes that differ, of two passes; None where a recording has ended.
    operands : tuple of Operand
        Operands that each reads there.
    """

    def __init__(
        self,
        reason: str,
        first: Node | None,
        second: Node | None,
        operands: tuple[Operand, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.first = first
        self.second = second
        self.operands = operands


def align(
    recordings: Sequence[Sequence[Node]], fresh: Callable[[Type], Value], span: Span
) -> Aligned:
    """Align the recordings of a body.

    Parameters
    ----------
    recordings : sequence of sequence of Node
        Nodes recorded by each pass, at least two.
    fresh : function
        Creates a value of a type.
    span : Span
        Where the loop begins: the place of copies.

    Raises
    ------
    MismatchError
        At the first difference.
    """
    aligner = _Aligner(recordings, fresh, span)
    nodes = aligner.nodes(recordings)
    return Aligned(aligner.carries(), nodes + tuple(aligner.copies))


def made_by(nodes: Sequence[Node]) -> list[Value]:
    """Values that nodes make, nested loops included, in an order equal for equal recordings."""
    values = list[Value]()
    for node in walk(nodes):
        values += node.results
        if isinstance(node, Loop):
            values += node.carries
    return values


class _Aligner:
    def __init__(
        self, recordings: Sequence[Sequence[Node]], fresh: Callable[[Type], Value], span: Span
    ) -> None:
        self._made = [made_by(nodes) for nodes in recordings]
        # Pass that made a value, and its place among the values of that pass.
        self._home = {
            value.name: (number, place)
            for number, values in enumerate(self._made)
            for place, value in enumerate(values)
        }
        self._fresh, self._span = fresh, span
        #: Copies of tiles for a further iteration.
        self.copies: list[Node] = []
        self._carries: dict[tuple[tuple[str, ...], int], Carry] = {}

    def carries(self) -> tuple[Carry, ...]:
        return tuple(self._carries.values())

    def nodes(self, recordings: Sequence[Sequence[Node]]) -> tuple[Node, ...]:
        return tuple(self._node(alike) for alike in zip_longest(*recordings))

    def _node(self, alike: Sequence[Node | None]) -> Node:
        first, last = alike[0], alike[-1]
        for other in alike[1:]:
            if first is None or other is None or not _alike(first, other):
                raise MismatchError("different", first, other)
        assert first is not None and last is not None
        nodes = [each for each in alike if each is not None]

        def together(operands: Sequence[Sequence[Operand]]) -> tuple[Operand, ...]:
            return tuple(self._operand(nodes, each) for each in zip(*operands))

        changes: dict[str, Any] = {"operands": together([each.operands for each in nodes])}
        loops = [each for each in nodes if isinstance(each, Loop)]
        if loops:
            changes["nodes"] = self.nodes([each.body for each in loops])
            changes["nexts"] = together([each.nexts for each in loops])
        return last.replace(**changes)

    def _operand(self, nodes: Sequence[Node], operands: Sequence[Operand]) -> Operand:
        values = [each for each in operands if isinstance(each, Value)]
        if len(values) < len(operands):
            return self._equal("different", nodes, operands)
        homes = [self._home.get(each.name) for each in values]
        starts = next((n for n, home in enumerate(homes) if home is not None), len(homes))
        if starts == len(homes):
            return self._equal("outer", nodes, values)
        made = homes[starts]
        for number, home in enumerate(homes[starts:]):
            reason = ""
            if home is None or made is None or (starts > 0 and made[0] > 0):
                reason = "turn"
            elif home[0] != number:
                reason = "stale" if starts == 0 else "turn"
            elif home[1] != made[1]:
                reason = "different"
            if reason:
                at = max(starts + number, 1)
                raise MismatchError(reason, nodes[0], nodes[at], (values[0], values[at]))
        if starts == 0 or made is None:
            return values[-1]
        return self._carry(tuple(values[:starts]), made[1]).entry

    def _equal(self, reason: str, nodes: Sequence[Node], operands: Sequence[Operand]) -> Operand:
        for node, each in zip(nodes, operands):
            if each != operands[0]:
                raise MismatchError(reason, nodes[0], node, (operands[0], each))
        return operands[-1]

    def _carry(self, starts: tuple[Value, ...], place: int) -> Carry:
        """Return the carry that starts as the first of several tiles, then goes on as a made one.

        Its value is that of the carry with the starts behind the first, an iteration later.
        """
        key = tuple(each.name for each in starts), place
        if key not in self._carries:
            lag = len(starts)
            made = self._made[-lag][place]
            if lag == 1:
                first, following = self._made[0][place], made
            else:
                source = self._carry(starts[1:], place).entry
                first = following = self._fresh(source.type)
                self.copies.append(Buffer((source,), (following,), self._span))
            entry = self._fresh(following.type)
            self._carries[key] = Carry(starts[0], entry, first, following, made, lag)
        return self._carries[key]


def _alike(first: Node, second: Node) -> bool:
    """Return whether two nodes agree in kind, attributes and number of operands."""
    if type(first) is not type(second) or len(first.operands) != len(second.operands):
        return False
    if isinstance(first, Loop) and isinstance(second, Loop):
        if len(first.carries) != len(second.carries):
            return False
    return all(
        getattr(first, each.name) == getattr(second, each.name)
        for each in fields(first)
        if each.name not in _NOT_ATTRIBUTES
    )


def describe(error: MismatchError, names: str) -> tuple[str, str]:
    """Return the error kind and the message of a mismatch.

    Parameters
    ----------
    error : MismatchError
    names : str
        Names of the operands in the program, in parentheses; empty if there are none.
    """
    if error.reason == "outer":
        return "carry", (
            f"Iterations read different tiles from before the loop{names}: a carry takes what an "
            "iteration before it made; an exchange of tiles from before the loop is not one: write "
            "`tw.buffer(x)` of one of them"
        )
    if error.reason == "stale":
        return "carry", (
            f"A tile of the first iteration{names} is read by later ones: carry it by rebinding a "
            "name from before the loop"
        )
    if error.reason == "turn":
        return "state", (
            f"The first iteration and later ones read different tiles{names}: one from before the "
            "loop, one of the iteration itself"
        )
    first, second = (
        f"`{each.kind}`" if each else "nothing" for each in (error.first, error.second)
    )
    message = (
        f"Iterations must record the same: the first records {first} where the second records "
        f"{second}{names}"
    )
    if _is_number_before(error):
        return "state", f"{message}: a loop carries tiles, so begin with `tw.zeros` or `tw.full`"
    return "state", message + (", with other numbers or tiles" if first == second else "")


def _is_number_before(error: MismatchError) -> bool:
    """Whether the first iteration takes a number where later ones take a tile."""
    pairs = zip(*(each.operands if each else () for each in (error.first, error.second)))
    return any(isinstance(a, Constant) and isinstance(b, Value) for a, b in pairs)
