"""Reductions along blocks of a loop, whose results depend on the size of the blocks.

Sizes of blocks are choices of the compiler. A reduction along the elements of a block may be
carried from block to block, so that the loop's result is of all of them. What it makes of a single
block may not be stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sw.ir.nodes import Loop, Node, Reduce, Store
from sw.ir.program import Program
from sw.ir.types import TileType

__all__ = ["stored_block_reductions"]


def stored_block_reductions(program: Program) -> Iterator[tuple[Reduce, str]]:
    """Reductions along the blocks of a loop that a store in it needs, and the loop's index."""
    yield from _stored(program.nodes, {}, frozenset())


def _stored(
    nodes: Iterable[Node], reduced: dict[str, dict[str, Reduce]], loops: frozenset[str]
) -> Iterator[tuple[Reduce, str]]:
    """Stored reductions along blocks among the nodes in some loops.

    ``reduced`` has the reductions along blocks of which a value is made, by the loop's index. What
    a loop carries has those of its start, and what it leaves has none along its own blocks.
    """
    for node in nodes:
        made: dict[str, Reduce] = {}
        for value in node.values:
            made |= reduced.get(value.name, {})
        if isinstance(node, Loop):
            reduced.update((each.name, made) for each in node.carries)
            yield from _stored(node.body, reduced, loops | {node.index})
            for result, value in zip(node.results, node.nexts, strict=True):
                found = made | reduced.get(value.name, {})
                found.pop(node.index, None)
                reduced[result.name] = found
            continue
        if isinstance(node, Reduce):
            (value,) = node.values
            size = value.type.axis(node.axis).size if isinstance(value.type, TileType) else 0
            if isinstance(size, str):
                made[size.strip("|")] = node
        if isinstance(node, Store):
            yield from ((each, index) for index, each in made.items() if index in loops)
        reduced.update((each.name, made) for each in node.results)
