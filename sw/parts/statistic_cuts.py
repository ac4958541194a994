"""Statistics of rows, which may pass through memory to the element math that needs them.

Rows on lanes take a PCU for as many rows as a vector has elements. With fewer rows most PCUs wait,
and most positions of vectors are idle, while element math alone passes in blocks on all of them.
"""

from __future__ import annotations

from collections.abc import Collection

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType
from sw.parts.slices import Cut, cuts, slice_of

__all__ = ["statistic_cuts"]


def statistic_cuts(program: Program, taken: Collection[str] = ()) -> list[Cut]:
    """Values of one number per row, made of statistics, that tiles behind them need.

    Parameters
    ----------
    program : Program
        A slice that one image serves.
    taken : collection of str
        Names that no intermediate tensor may have.
    """
    nodes = list(walk(program.nodes))
    if not any(isinstance(each, ir.Reduce) and each.axis == 1 for each in nodes):
        return []
    needed = {
        value.name for each in nodes if any(map(_is_tile, each.results)) for value in each.values
    }
    return [
        cut
        for cut in cuts(program, taken)
        if cut.value.name in needed and not _is_tile(cut.value) and _is_reduced(program, cut)
    ]


def _is_tile(value: ir.Value) -> bool:
    """Whether a value has several columns."""
    return isinstance(value.type, TileType) and value.type.cols.size != 1


def _is_reduced(program: Program, cut: Cut) -> bool:
    made = walk(slice_of(program, (), [cut]).nodes)
    return any(isinstance(each, ir.Reduce) and each.axis == 1 for each in made)
