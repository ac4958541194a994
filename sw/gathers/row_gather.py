"""Gather of rows of a tensor in memory by numbers in memory, recognised in a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Entry
from sw.language.program_error import refused

__all__ = ["RowGather", "block_of", "has_gather", "row_gather_of"]


@dataclasses.dataclass(frozen=True)
class RowGather:
    """Rows of a table in the order of their numbers.

    Parameters
    ----------
    table, numbers, result : str
        Tensors: two axes, one axis of int32, two axes.
    table_rows, rows, columns : int
        Rows of the table; rows and columns of the result.
    loops : mapping of str to str
        Index of the loop over ``row`` and ``column`` of the result, for each that exists.
    """

    table: str
    numbers: str
    result: str
    table_rows: int
    rows: int
    columns: int
    loops: Mapping[str, str]

    def text(self) -> str:
        """Table, row numbers and result, as a line of text."""
        return (
            f"gather of {self.rows} x {self.columns}: {self.result} = rows of {self.table} "
            f"({self.table_rows}) named by {self.numbers}"
        )


def has_gather(program: Program) -> bool:
    """Whether a program has a gather of rows in memory."""
    return any(isinstance(node, ir.Gather) for node in walk(program.nodes))


def row_gather_of(program: Program) -> RowGather:
    """Recognise a program as one gather of rows.

    Raises
    ------
    ProgramError
        At the first node that is not part of such a program.
    """
    loops: dict[str, ir.Loop] = {}
    loads: list[ir.Load] = []
    gathers: list[ir.Gather] = []
    stores: list[ir.Store] = []
    copies: dict[str, ir.Operand] = {}
    for node in walk(program.nodes):
        match node:
            case ir.Loop() if node.mode == "metapipe" and not node.carries and node.until is None:
                loops[node.index] = node
            case ir.Load():
                loads.append(node)
            case ir.Gather():
                gathers.append(node)
            case ir.Store():
                stores.append(node)
            case ir.Buffer():
                copies[node.result.name] = node.operands[0]
            case _:
                raise refused(
                    node, f"`{node.kind}` beside a gather is not supported by hardware yet"
                )
    for some in (loads, gathers, stores):
        if len(some) != 1:
            rule = "A gather takes one load of row numbers, and one store of the rows"
            raise refused(some[-1] if some else gathers[0], f"{rule} in an image, not {len(some)}")
    (load,), (gather,), (store,) = loads, gathers, stores
    source: ir.Operand = store.values[0]
    while isinstance(source, ir.Value) and source.name in copies:
        source = copies[source.name]
    if source != gather.result or gather.values[0] != load.result:
        raise refused(gather, "Row numbers must come from memory, and gathered rows go there")
    return _whole(program, loops, load, gather, store)


def _whole(
    program: Program,
    loops: Mapping[str, ir.Loop],
    load: ir.Load,
    gather: ir.Gather,
    store: ir.Store,
) -> RowGather:
    """The gather, of whole tensors cut into blocks by loops alone."""
    table, numbers, result = (
        program.tensor(each.view.tensor).type for each in (gather, load, store)
    )
    if len(table.shape) != 2 or len(numbers.shape) != 1 or len(result.shape) != 2:
        raise refused(gather, "A gather of tensors of this many axes is not supported yet")
    if table.format != result.format:
        raise refused(
            store, f"Rows of {table.format.name} must be stored as they are, not cast yet"
        )
    row, column = (
        block_of(each, size, loops, store) for each, size in zip(store.view.entries, result.shape)
    )
    found = (
        block_of(gather.view.entries[0], table.shape[0], loops, gather),
        block_of(gather.view.entries[1], table.shape[1], loops, gather),
        block_of(load.view.entries[0], numbers.shape[0], loops, load),
    )
    if found != (None, column, row) or table.shape[1] != result.shape[1]:
        raise refused(gather, "A gather takes rows of the whole table, each row at its number")
    named = {"row": row, "column": column}
    return RowGather(
        gather.view.tensor,
        load.view.tensor,
        store.view.tensor,
        table.shape[0],
        *result.shape,
        {role: index for role, index in named.items() if index is not None},
    )


def block_of(entry: Entry, size: int, loops: Mapping[str, ir.Loop], node: ir.Node) -> str | None:
    """Index of the loop whose block an entry selects; None for the whole axis."""
    for index, loop in loops.items():
        if entry.start == Affine.of(index) and loop.extent == size:
            return index
    if entry == Entry(Affine(), Axis(size)):
        return None
    raise refused(node, "A part of an axis is not supported by hardware yet: whole axes are")
