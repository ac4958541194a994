"""Columns that begin where no transfer can, as rows of transposed tensors.

A transfer begins at a multiple of 16 bytes, and so does each row of a tensor, but not each column.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from sw.ir import nodes as ir
from sw.ir.affine import Axis
from sw.ir.program import Program
from sw.ir.types import Entry, View
from sw.parts.columns import MisplacedColumnsError, column_ranges
from sw.parts.forms.column_groups import column_groups
from sw.parts.forms.stored_columns import with_stored_columns
from sw.parts.forms.turned_math import with_turned_math
from sw.parts.forms.turned_tensors import with_turned_tensors
from sw.passes.simplify import live

__all__ = ["with_turned_columns"]


def with_turned_columns(program: Program) -> Program:
    """The program without columns that begin at no multiple of `BASE_ALIGNMENT` bytes.

    It is the program itself if it has none that a tensor helps: columns of one row, and of tensors
    that are updated in place, gathered or scattered, stay.
    """
    lean = dataclasses.replace(program, nodes=live(program.nodes))
    loaded = _with_loaded_columns(lean)
    groups = column_groups(loaded)
    found = with_turned_tensors(with_stored_columns(loaded, groups), groups)
    return program if found is lean else with_turned_math(_ranged(found))


def _ranged(program: Program) -> Program:
    """The program without pieces and joins, where they are in other places than before."""
    try:
        return column_ranges(program)
    except MisplacedColumnsError:
        return program


def _with_loaded_columns(program: Program) -> Program:
    """The program that loads such columns of loaded tiles, and those of an iteration, alone."""
    groups = column_groups(program)
    loads: dict[str, ir.Load] = {}

    def block(nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(block(node.body)))
            elif isinstance(node, ir.Load):
                loads[node.result.name] = node
            elif isinstance(node, ir.Columns) and (load := loads.get(node.values[0].name)):
                *outer, last = load.view.entries
                apart = node.first.terms or groups[node.result.name].misplaced
                if last.axis is not None and apart:
                    entry = Entry(last.start + node.first, Axis(node.count))
                    view = View(load.view.tensor, (*outer, entry))
                    node = ir.Load((), node.results, load.span, view)
            yield node

    nodes = tuple(block(program.nodes))
    if nodes == program.nodes:
        return program
    return dataclasses.replace(program, nodes=live(nodes))
