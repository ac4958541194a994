"""Scatter of rows in memory to rows of a tensor by numbers in memory, recognised in a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.gathers.row_gather import block_of, refuse
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk

__all__ = ["RowScatter", "has_scatter", "row_scatter_of"]


@dataclasses.dataclass(frozen=True)
class RowScatter:
    """Rows stored in their order as the rows of a table that their numbers name.

    Parameters
    ----------
    table, numbers, source : str
        Tensors: two axes, one axis of int32, two axes.
    table_rows, rows, columns : int
        Rows of the table; rows and columns of the source.
    loops : mapping of str to str
        Index of the loop over ``row`` and ``column`` of the source, for each that exists.
    """

    table: str
    numbers: str
    source: str
    table_rows: int
    rows: int
    columns: int
    loops: Mapping[str, str]

    def text(self) -> str:
        """Table, row numbers and source, as a line of text."""
        return (
            f"scatter of {self.rows} x {self.columns}: rows of {self.table} ({self.table_rows}) "
            f"named by {self.numbers} = {self.source}"
        )


def has_scatter(program: Program) -> bool:
    """Whether a program has a scatter of rows."""
    return any(isinstance(node, ir.Scatter) for node in walk(program.nodes))


def row_scatter_of(program: Program) -> RowScatter:
    """Recognise a program as one scatter of rows.

    Raises
    ------
    ProgramError
        At the first node that is not part of such a program.
    """
    loops: dict[str, ir.Loop] = {}
    loads: dict[str, ir.Load] = {}
    scatters: list[ir.Scatter] = []
    copies: dict[str, ir.Operand] = {}
    for node in walk(program.nodes):
        match node:
            case ir.Loop() if node.mode == "metapipe" and not node.carries and node.until is None:
                loops[node.index] = node
            case ir.Load():
                loads[node.result.name] = node
            case ir.Scatter():
                scatters.append(node)
            case ir.Buffer():
                copies[node.result.name] = node.operands[0]
            case _:
                raise refuse(
                    node, f"`{node.kind}` beside a scatter is not supported by hardware yet"
                )
    scatter = scatters[-1]
    if len(scatters) != 1 or len(loads) != 2:
        rule = "A scatter takes one load of row numbers and one of rows in an image"
        raise refuse(scatter, f"{rule}, not {len(scatters)} scatters and {len(loads)} loads")
    found = []
    for operand in scatter.operands:
        while isinstance(operand, ir.Value) and operand.name in copies:
            operand = copies[operand.name]
        found.append(loads.get(operand.name) if isinstance(operand, ir.Value) else None)
    numbers, source = found
    if numbers is None or source is None:
        raise refuse(scatter, "Row numbers and rows to scatter must come from memory")
    names = [each.view.tensor for each in (scatter, numbers, source)]
    table, named, rows = (program.tensor(name).type for name in names)
    if names[0] in names[1:]:
        raise refuse(scatter, f"`{names[0]}` cannot be scattered to and be loaded in one image")
    if len(table.shape) != 2 or len(named.shape) != 1 or len(rows.shape) != 2:
        raise refuse(scatter, "A scatter to tensors of this many axes is not supported yet")
    if table.format != rows.format:
        raise refuse(
            scatter, f"Rows of {rows.format.name} must be stored as they are, not cast yet"
        )
    row, column = (
        block_of(each, size, loops, source) for each, size in zip(source.view.entries, rows.shape)
    )
    blocks = (
        block_of(scatter.view.entries[0], table.shape[0], loops, scatter),
        block_of(scatter.view.entries[1], table.shape[1], loops, scatter),
        block_of(numbers.view.entries[0], named.shape[0], loops, numbers),
    )
    if blocks != (None, column, row) or table.shape[1] != rows.shape[1]:
        raise refuse(scatter, "A scatter stores to rows of the whole table, each at its number")
    indices = {"row": row, "column": column}
    return RowScatter(
        names[0],
        names[1],
        names[2],
        table.shape[0],
        *rows.shape,
        {role: index for role, index in indices.items() if index is not None},
    )
