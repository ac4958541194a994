"""Element math of one number per row or per column, which a matrix would repeat.

Lanes compute what they take, so the logarithm of a sum of each row would be computed again for each
column of the tile from which it is subtracted.
"""

from __future__ import annotations

import math

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType
from sw.parts.forms.expand import expanded
from sw.parts.slices import Cut, cuts, slice_of

__all__ = ["narrow_cuts"]

#: Operations on elements that are to be saved: what a launch costs.
_LEAST = 1 << 15
_ELEMENT_MATH = (ir.Load, ir.Map, ir.Cast, ir.Full, ir.Buffer, ir.Loop, ir.Store)


def narrow_cuts(program: Program) -> list[Cut]:
    """Values of one number per row, or per column, that are worth a launch, most operations first.

    Parameters
    ----------
    program : Program
        A slice that one image serves.
    """
    most = max((math.prod(each.type.shape) for each in program.tensors), default=0)
    counts: dict[Cut, int] = {}
    for cut in cuts(program):
        own = slice_of(program, (), [cut]) if _is_narrow(cut.node) else None
        if own is not None and all(map(_is_narrow, walk(own.nodes))):
            count = sum(isinstance(each, ir.Map) for each in walk(expanded(own).nodes))
            if count * (most - math.prod(cut.tensor.type.shape)) >= _LEAST:
                counts[cut] = count
    return sorted(counts, key=lambda each: counts[each], reverse=True)


def _is_narrow(node: ir.Node) -> bool:
    """Whether a node is element math of one number per row, or per column."""
    tiles = [each.type for each in node.results if isinstance(each.type, TileType)]
    narrow = all(1 in (each.rows.size, each.cols.size) for each in tiles)
    return narrow and isinstance(node, _ELEMENT_MATH)
