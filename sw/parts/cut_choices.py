"""Properties of cuts, by which the search for a division tries some before others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sw.ir import nodes as ir
from sw.ir.format_rules import int8
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType
from sw.parts.slices import Cut, slice_of

__all__ = ["computes", "is_counted", "is_operand", "largest", "loads"]


def computes(program: Program) -> bool:
    """Whether a slice has more than loads, casts and copies."""
    return any(
        isinstance(node, ir.Matmul | ir.Map | ir.Reduce | ir.Transpose | ir.Gather | ir.Iota)
        for node in walk(program.nodes)
    )


def loads(program: Program) -> bool:
    """Whether a slice has more than numbers and constants."""
    return any(isinstance(node, ir.Load | ir.Gather) for node in walk(program.nodes))


def is_counted(cut: Cut, reduced: Collection[int]) -> bool:
    """Whether a cut is of numbers along a reduced axis: lanes count those that they reduce."""
    return isinstance(cut.node, ir.Iota) and cut.node.axis in reduced


def is_operand(program: Program, cut: Cut) -> bool:
    """Whether a cut is a cast or a constant of a product, or a cast of int8 that is reduced.

    Operands in memory need no computation, and lanes have no statistics of int8.
    """
    if isinstance(cut.node, ir.Full):
        return True
    if not isinstance(cut.node, ir.Cast):
        return False
    (source,) = cut.node.values
    short = isinstance(source.type, TileType) and source.type.format == int8
    return any(
        (isinstance(node, ir.Matmul) or (short and isinstance(node, ir.Reduce)))
        and cut.value in node.values[:2]
        for node in walk(program.nodes)
    )


def largest(program: Program, choices: Sequence[Cut]) -> Iterator[Cut]:
    """The cuts whose values no other cut's slice computes."""
    within = [
        {each.name for node in walk(slice_of(program, (), [cut]).nodes) for each in node.results}
        for cut in choices
    ]
    for cut in choices:
        if sum(cut.value.name in names for names in within) == 1:
            yield cut
