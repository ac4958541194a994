"""Detection of loop-carried tiles by aligning two recordings of a loop body.

Both passes run with the same index, so whatever is equal in all iterations is equal in both. An
operand is one of these:

- the same outer value in both, or the corresponding value of each pass: used as it is;
- outer value *p* in the first pass, and in the second pass value *q* of the first: a carry that
  starts as *p* and continues as *q*;
- anything else: state that cannot be told from a mistake by two passes, and is refused.

Each use is decided separately, so two names may start as the same tile. The second pass is kept,
because its types are those of every later iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any

from sw.ir.nodes import Constant, Loop, Node, Operand, Value
from sw.ir.rewrite import walk
from sw.ir.types import Type

__all__ = ["Aligned", "Carry", "MismatchError", "align", "describe"]

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
    first, second : Value
        Value for the next iteration, as recorded in the first and the second pass.
    """

    start: Value
    entry: Value
    first: Value
    second: Value


@dataclass(frozen=True)
class Aligned:
    """An aligned loop body, valid for all iterations, with its carries."""

    carries: tuple[Carry, ...]
    nodes: tuple[Node, ...]


class MismatchError(Exception):
    """Two recordings that differ in something other than carried tiles.

    Parameters
    ----------
    reason : str
        ``different``: different operations or numbers. ``outer``: two outer tiles. ``stale``: a
        tile of the first pass that the second still reads. ``turn``: a tile from outside the loop
        in one pass, from inside in the other.
    first, second : Node or None
        The first nodes that differ; None where a recording has ended.
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


def align(first: Sequence[Node], second: Sequence[Node], fresh: Callable[[Type], Value]) -> Aligned:
    """Align two recordings of a body.

    Parameters
    ----------
    first, second : sequence of Node
        Nodes recorded by the passes.
    fresh : function
        Creates a value of a type.

    Raises
    ------
    MismatchError
        At the first difference.
    """
    aligner = _Aligner(_made(first), _made(second), fresh)
    nodes = aligner.nodes(first, second)
    return Aligned(aligner.carries(), nodes)


def _made(nodes: Sequence[Node]) -> set[str]:
    """Names of all results of nodes, nested loops included."""
    names = {value.name for node in walk(nodes) for value in node.results}
    loops = (node for node in walk(nodes) if isinstance(node, Loop))
    return names | {value.name for loop in loops for value in loop.carries}


class _Aligner:
    def __init__(
        self, in_first: set[str], in_second: set[str], fresh: Callable[[Type], Value]
    ) -> None:
        self._in_first = in_first
        self._in_second = in_second
        self._fresh = fresh
        # Value of the second pass for each of the first.
        self._twin: dict[str, Value] = {}
        self._entries: dict[tuple[str, str], tuple[Value, Value, Value]] = {}

    def carries(self) -> tuple[Carry, ...]:
        return tuple(
            Carry(start, entry, first, self._twin[first.name])
            for start, entry, first in self._entries.values()
        )

    def nodes(self, first: Sequence[Node], second: Sequence[Node]) -> tuple[Node, ...]:
        return tuple(self._node(a, b) for a, b in zip_longest(first, second))

    def _node(self, first: Node | None, second: Node | None) -> Node:
        if first is None or second is None or not _alike(first, second):
            raise MismatchError("different", first, second)

        def pair(ours: Sequence[Operand], theirs: Sequence[Operand]) -> tuple[Any, ...]:
            return tuple(self._operand(first, second, x, y) for x, y in zip(ours, theirs))

        changes: dict[str, Any] = {"operands": pair(first.operands, second.operands)}
        if isinstance(first, Loop) and isinstance(second, Loop):
            self._note(first.carries, second.carries)
            changes["nodes"] = self.nodes(first.body, second.body)
            changes["nexts"] = pair(first.nexts, second.nexts)
        self._note(first.results, second.results)
        return second.replace(**changes)

    def _note(self, ours: Sequence[Value], theirs: Sequence[Value]) -> None:
        self._twin.update((x.name, y) for x, y in zip(ours, theirs))

    def _operand(self, first: Node, second: Node, x: Operand, y: Operand) -> Operand:
        if not isinstance(x, Value) or not isinstance(y, Value):
            if x != y:
                raise MismatchError("different", first, second, (x, y))
            return y
        inner = x.name in self._in_first
        if y.name in self._in_second:
            if not inner:
                raise MismatchError("turn", first, second, (x, y))
            if self._twin[x.name].name != y.name:
                raise MismatchError("different", first, second, (x, y))
            return y
        if y.name in self._in_first:
            if inner:
                raise MismatchError("stale", first, second, (x, y))
            return self._entry(x, y)
        if inner:
            raise MismatchError("turn", first, second, (x, y))
        if x.name != y.name:
            raise MismatchError("outer", first, second, (x, y))
        return y

    def _entry(self, start: Value, first: Value) -> Value:
        key = (start.name, first.name)
        if key not in self._entries:
            self._entries[key] = (start, self._fresh(first.type), first)
        return self._entries[key][1]


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
            f"Iterations read different tiles from before the loop{names}: a carry takes what the "
            "iteration before it made; an exchange or a longer lag is not one"
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
