"""A loop over blocks with several times its extent."""

from __future__ import annotations

from typing import Any

from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.rewrite import rebuild

__all__ = ["with_longer_loop"]


def with_longer_loop(nodes: tuple[ir.Node, ...], loop: ir.Loop, times: int) -> tuple[ir.Node, ...]:
    """Nodes in which a loop goes over so many times its elements, and clips its blocks there.

    Parameters
    ----------
    nodes : tuple of Node
    loop : Loop
        One of these, or inside them.
    times : int
    """
    more = loop.extent * (times - 1)

    def change(item: Any) -> Any:
        if isinstance(item, Axis) and loop.index in item.symbols:
            rests = (rest + more if loop.index in rest.symbols else rest for rest in item.rests)
            return Axis(item.size, tuple(rests))
        if isinstance(item, ir.Loop) and item.index == loop.index:
            return item.replace(extent=loop.extent + more)
        return item

    changed: tuple[ir.Node, ...] = rebuild(nodes, change)
    return changed
