"""Traversal and rewriting of nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from sw.ir.affine import Affine, Axis, Bound
from sw.ir.nodes import NODES, Loop, Node, Operand, Value
from sw.ir.program import Program
from sw.ir.types import Entry, TileType, View

__all__ = [
    "Names",
    "map_operands",
    "rebuild",
    "rename",
    "replaced",
    "same_nodes",
    "unused",
    "used",
    "walk",
]

# Names of the parts of everything that has parts worth visiting.
_PARTS: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind))
    for kind in (*NODES.values(), Value, TileType, View, Entry)
}


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Iterate over nodes and the nodes inside them, outer before inner."""
    for node in nodes:
        yield node
        if node.body:
            yield from walk(node.body)


def used(node: Node) -> Iterator[Value]:
    """Iterate over the values used by a node or inside it, nexts of loops included."""
    yield from node.values
    for each in node.body:
        yield from used(each)
    if isinstance(node, Loop):
        yield from node.nexts


def map_operands(node: Node, operand: Callable[[Operand], Operand]) -> Node:
    """Map the operands of a node and of all nodes inside it, and the nexts of its loops."""
    changes: dict[str, Any] = {"operands": tuple(operand(each) for each in node.operands)}
    if node.body:
        changes["nodes"] = tuple(map_operands(each, operand) for each in node.body)
    if isinstance(node, Loop):
        changes["nexts"] = tuple(operand(each) for each in node.nexts)
    return node.replace(**changes)


def replaced(values: Mapping[str, Operand], operand: Operand) -> Operand:
    """Operand after replacement of values by name, as often as the replacement is named again."""
    while isinstance(operand, Value) and operand.name in values:
        operand = values[operand.name]
    return operand


class Names:
    """Names of a program's values, and new ones beside them.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program) -> None:
        self._taken = {
            value.name
            for node in walk(program.nodes)
            for value in (*node.results, *(node.carries if isinstance(node, Loop) else ()))
        }

    def fresh(self, like: Value, type_: TileType | None = None) -> Value:
        """A value named after another one's variable, of the same or of another type."""
        # A value without a variable has a number as its name.
        stem = like.variable
        number = 2 if stem else 1
        while (name := f"{stem}.{number}" if stem else str(number)) in self._taken:
            number += 1
        self._taken.add(name)
        return Value(name, type_ or like.type)


def same_nodes(former: tuple[Node, ...], found: list[Node]) -> tuple[Node, ...]:
    """Nodes as a tuple: the former one if they are its nodes."""
    same = len(found) == len(former) and all(map(operator.is_, found, former))
    return former if same else tuple(found)


def rebuild(item: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuild a node, value, type or view from its parts.

    Parameters
    ----------
    item : object
        The part to rebuild.
    change : function
        Called with every part, inner before outer, and once with a part that occurs several times;
        returns the replacement.
    """
    return _rebuilt(item, change, {})


def _rebuilt(item: Any, change: Callable[[Any], Any], changed: dict[int, Any]) -> Any:
    if isinstance(item, tuple):
        parts = tuple([_rebuilt(each, change, changed) for each in item])
        return parts if any(map(operator.is_not, parts, item)) else item
    # All parts live as long as the whole, so no two have one number.
    if id(item) in changed:
        return changed[id(item)]
    different: dict[str, Any] = {}
    for name in _PARTS.get(type(item), ()):
        former = getattr(item, name)
        part = _rebuilt(former, change, changed)
        if part is not former:
            different[name] = part
    changed[id(item)] = made = change(replace(item, **different) if different else item)
    return made


def rename(program: Program, values: Mapping[str, str], symbols: Mapping[str, Affine]) -> Program:
    """Rename values, and replace symbols in types, views, bounds and loops.

    Parameters
    ----------
    program : Program
    values : mapping of str to str
        New names of values.
    symbols : mapping of str to Affine
        Replacement of each symbol; for the index of a loop it must be another symbol.
    """

    def change(item: Any) -> Any:
        if isinstance(item, Affine | Axis | Bound):
            return item.substitute(symbols)
        if isinstance(item, Value) and item.name in values:
            return Value(values[item.name], item.type)
        if isinstance(item, Loop) and item.index in symbols:
            return replace(item, index=symbols[item.index].symbols[0])
        return item

    return replace(program, nodes=rebuild(program.nodes, change))


def unused(stem: str, names: Collection[str]) -> str:
    """A name that is not among these."""
    name, number = stem, 2
    while name in names:
        name, number = f"{stem}.{number}", number + 1
    return name
