"""Scatter of rows to rows of a tensor by numbers in memory, recognised in a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.gathers.row_gather import block_of
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.language.program_error import refused

__all__ = ["RowScatter", "has_scatter", "row_scatter_of"]


_WHOLE = "A scatter stores to rows of the whole table, each at its number"


@dataclasses.dataclass(frozen=True)
class RowScatter:
    """Rows stored in their order as the rows of a table that their numbers name, or added there.

    Parameters
    ----------
    table, numbers : str
        Tensors: two axes, one axis of int32.
    source : str or int
        Tensor of two axes, or the number that all its elements are.
    adds : bool
        Whether int32 rows are added.
    table_rows, rows, columns : int
        Rows of the table; rows and columns of the source.
    loops : mapping of str to str
        Index of the loop over ``row`` and ``column`` of the source, for each that exists.
    """

    table: str
    numbers: str
    source: str | int
    adds: bool
    table_rows: int
    rows: int
    columns: int
    loops: Mapping[str, str]

    def text(self) -> str:
        """Table, row numbers and source, as a line of text."""
        return (
            f"scatter of {self.rows} x {self.columns}: rows of {self.table} ({self.table_rows}) "
            f"named by {self.numbers} {'+=' if self.adds else '='} {self.source}"
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
    made: dict[str, ir.Load | ir.Full] = {}
    scatters: list[ir.Scatter] = []
    copies: dict[str, ir.Operand] = {}
    for node in walk(program.nodes):
        match node:
            case ir.Loop() if node.mode == "metapipe" and not node.carries and node.until is None:
                loops[node.index] = node
            case ir.Load() | ir.Full():
                made[node.result.name] = node
            case ir.Scatter():
                scatters.append(node)
            case ir.Buffer():
                copies[node.result.name] = node.operands[0]
            case _:
                way = "store the rows to `tw.local(..., spill=True)`, and load them from there"
                message = f"`{node.kind}` beside a scatter is not supported by hardware yet: {way}"
                raise refused(node, message)
    scatter = scatters[-1]
    if len(scatters) != 1 or len(made) != 2:
        rule = "A scatter takes one load of row numbers and one of rows in an image"
        raise refused(scatter, f"{rule}, not {len(scatters)} scatters and {len(made)} loads")
    found = []
    for operand in scatter.operands:
        while isinstance(operand, ir.Value) and operand.name in copies:
            operand = copies[operand.name]
        found.append(made.get(operand.name) if isinstance(operand, ir.Value) else None)
    numbers, source = found
    if not isinstance(numbers, ir.Load) or source is None:
        raise refused(scatter, "Row numbers and rows to scatter must come from memory")
    table, named = (program.tensor(each.view.tensor).type for each in (scatter, numbers))
    if len(table.shape) != 2 or len(named.shape) != 1:
        raise refused(scatter, "A scatter to tensors of this many axes is not supported yet")
    row = block_of(numbers.view.entries[0], named.shape[0], loops, numbers)
    column = block_of(scatter.view.entries[1], table.shape[1], loops, scatter)
    if isinstance(source, ir.Full):
        rows: str | int = _constant(scatter, source)
    else:
        rows = source.view.tensor
        _require_rows(program, scatter, numbers, source)
        sides = zip(source.view.entries, program.tensor(rows).type.shape)
        if (row, column) != tuple(block_of(each, size, loops, source) for each, size in sides):
            raise refused(scatter, _WHOLE)
    if block_of(scatter.view.entries[0], table.shape[0], loops, scatter) is not None:
        raise refused(scatter, _WHOLE)
    indices = {"row": row, "column": column}
    return RowScatter(
        scatter.view.tensor,
        numbers.view.tensor,
        rows,
        scatter.op == "add",
        table.shape[0],
        named.shape[0],
        table.shape[1],
        {role: index for role, index in indices.items() if index is not None},
    )


def _constant(scatter: ir.Scatter, source: ir.Full) -> int:
    """The number of which rows are added."""
    value = source.value.value
    if scatter.op != "add" or not isinstance(value, int):
        raise refused(scatter, "Rows of a constant can be added by a scatter, not be stored yet")
    return value


def _require_rows(program: Program, scatter: ir.Scatter, numbers: ir.Load, source: ir.Load) -> None:
    """Refuse rows that are no whole rows of the table, or lie in it."""
    names = [each.view.tensor for each in (scatter, numbers, source)]
    table, _, rows = (program.tensor(name).type for name in names)
    if names[0] in names[1:]:
        raise refused(scatter, f"`{names[0]}` cannot be scattered to and be loaded in one image")
    if len(rows.shape) != 2:
        raise refused(scatter, "A scatter to tensors of this many axes is not supported yet")
    if table.format != rows.format:
        raise refused(
            scatter, f"Rows of {rows.format.name} must be stored as they are, not cast yet"
        )
    if table.shape[1] != rows.shape[1]:
        raise refused(scatter, _WHOLE)
