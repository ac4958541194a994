"""Range of row numbers: rows that gathers and scatters of a program have for those of a tensor."""

from __future__ import annotations

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import TileType

__all__ = ["row_limits"]


def row_limits(program: Program) -> dict[str, int]:
    """Rows that the numbers in a tensor may name, by tensor.

    Parameters
    ----------
    program : Program
        Row numbers that it computes, or that name rows of a block of a loop, are left out.
    """
    sources: dict[str, str] = {}
    found: dict[str, int] = {}
    for node in walk(program.nodes):
        match node:
            case ir.Load():
                sources[node.result.name] = node.view.tensor
            case ir.Buffer() | ir.Transpose() if node.values[0].name in sources:
                sources[node.result.name] = sources[node.values[0].name]
            case ir.Gather() | ir.Take() | ir.Scatter():
                numbers = node.values[0] if isinstance(node, ir.Scatter) else node.values[-1]
                tensor = sources.get(numbers.name)
                if not isinstance(node, ir.Take):
                    rows = node.view.axes[0]
                else:
                    assert isinstance(node.values[0].type, TileType)
                    rows = node.values[0].type.rows
                if tensor is not None and isinstance(rows.size, int):
                    found[tensor] = min(rows.size, found.get(tensor, rows.size))
    return found
