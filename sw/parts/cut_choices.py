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
    """Whether a cut must be in memory though it needs no computation.

    It is a cast or a constant of a product, a cast that is transposed, or columns of it, a cast of
    int8 that is reduced, for lanes have no statistics of int8, or a joined tile that is taken
    whole.
    """
    users = [each for each in walk(program.nodes) if cut.value in each.values[:2]]
    match cut.node:
        case ir.Full():
            return True
        case ir.Join():
            casts = [each.result for each in users if isinstance(each, ir.Cast)]
            return any(
                isinstance(each, ir.Matmul | ir.Reduce | ir.Transpose)
                and not {cut.value, *casts}.isdisjoint(each.values[:2])
                for each in walk(program.nodes)
            )
        case ir.Columns():
            return any(isinstance(each, ir.Transpose) for each in users)
        case ir.Cast():
            (source,) = cut.node.values
            short = isinstance(source.type, TileType) and source.type.format == int8
            return any(
                isinstance(each, ir.Matmul | ir.Transpose)
                or (short and isinstance(each, ir.Reduce))
                for each in users
            )
    return False


def largest(program: Program, choices: Sequence[Cut]) -> Iterator[Cut]:
    """The cuts whose values no other cut's slice computes."""
    within = [
        {each.name for node in walk(slice_of(program, (), [cut]).nodes) for each in node.results}
        for cut in choices
    ]
    for cut in choices:
        if sum(cut.value.name in names for names in within) == 1:
            yield cut
