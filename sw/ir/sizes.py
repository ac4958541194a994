"""Substitution of block sizes for their symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from sw.ir.affine import Affine, Axis, size_symbol
from sw.ir.nodes import Loop, Node
from sw.ir.program import Program
from sw.ir.rewrite import rebuild, rename, walk

__all__ = ["choose_sizes", "index_ranges", "open_sizes", "trips", "without_idle_rests"]


def trips(loop: Loop) -> int:
    """Return the iterations of a loop, early ends disregarded; its block size must be chosen."""
    return ceil_div(loop.extent, loop.tile or 1) if loop.blocks else loop.extent


def index_ranges(nodes: tuple[Node, ...]) -> dict[str, tuple[int, int]]:
    """Return the closed range of each loop index in these nodes.

    Without a chosen block size, the index is assumed to reach the loop's last element.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for node in walk(nodes):
        if isinstance(node, Loop):
            step = (node.tile or 1) if node.blocks else 1
            ranges[node.index] = (0, max(0, trips(node) - 1) * step)
            if node.blocks:
                ranges[size_symbol(node.index)] = (1, node.extent)
    return ranges


def open_sizes(program: Program) -> tuple[str, ...]:
    """Return the indices of the loops whose block size is not chosen yet."""
    left: dict[str, None] = {}

    def note(item: Any) -> Any:
        if isinstance(item, Affine | Axis):
            left.update(dict.fromkeys(each for each in item.symbols if each.startswith("|")))
        return item

    rebuild(program.nodes, note)
    unset = (
        node.index
        for node in walk(program.nodes)
        if isinstance(node, Loop) and node.blocks and node.tile is None
    )
    return tuple(dict.fromkeys((*unset, *(each.strip("|") for each in left))))


def choose_sizes(
    program: Program, sizes: Mapping[str, int] | None = None, *, default: int | None = None
) -> Program:
    """Substitute the block sizes, and drop the rests that can no longer clip.

    Parameters
    ----------
    program : Program
    sizes : mapping of str to int
        Size by loop index; loops not listed take the program's hint.
    default : int
        Size for a loop without either.

    Raises
    ------
    BadInputError
        If a loop has no size, or one below 1.
    """
    chosen: dict[str, int] = {}
    for node in walk(program.nodes):
        if isinstance(node, Loop) and node.blocks:
            size = (sizes or {}).get(node.index, node.tile or default)
            if size is None or size < 1:
                raise BadInputError(
                    f"Block size of loop {node.index} must be 1 or more, not {size}"
                )
            chosen[node.index] = size
    symbols = {size_symbol(index): Affine((), size) for index, size in chosen.items()}

    def set_tile(item: Any) -> Any:
        if isinstance(item, Loop) and item.blocks:
            return replace(item, tile=chosen[item.index])
        return item

    nodes = rebuild(rename(program, {}, symbols).nodes, set_tile)
    ranges = index_ranges(nodes)

    def drop_tails(item: Any) -> Any:
        return without_idle_rests(item, ranges) if isinstance(item, Axis) else item

    return replace(program, nodes=rebuild(nodes, drop_tails))


def without_idle_rests(axis: Axis, ranges: Mapping[str, tuple[int, int]]) -> Axis:
    """Return an axis without the rests that never clip it, for ranges of the indices."""
    size = axis.size
    if isinstance(size, str):
        return axis
    bounds = {rest: rest.bounds(ranges) for rest in axis.rests}
    return Axis(size, tuple(rest for rest, at in bounds.items() if at is None or at[0] < size))
