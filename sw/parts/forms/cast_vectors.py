"""Vectors of bf16 along the columns, beside those of fp32, as casts that may pass through memory.

Two vectors of one format are one stream of pairs, and take one lane program. Vectors of two formats
take one each. A cast of a vector costs a launch; where it stays in a part, lanes take the bf16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from sw.ir import nodes as ir
from sw.ir.format_rules import bf16, fp32
from sw.ir.infer import exchanged
from sw.ir.program import Program
from sw.ir.rewrite import Names, walk
from sw.ir.types import TileType
from sw.parts.slices import Cut, cuts

__all__ = ["vector_casts", "with_cast_vectors"]


def with_cast_vectors(program: Program) -> Program:
    """The program whose element math takes such vectors as casts to fp32; no result changes.

    It is the program itself if it has a product or a scatter, or if its vectors have one format.
    """
    if not _has_both(program):
        return program
    names = Names(program)
    casts: dict[str, ir.Value] = {}

    def block(nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(block(node.body)))
            elif isinstance(node, ir.Map) and _row(node) is None:
                node = exchanged(node, casts)
            yield node
            kind = _row(node)
            if isinstance(node, ir.Load) and kind is not None and kind.format == bf16:
                wide = names.fresh(node.result, dataclasses.replace(kind, format=fp32))
                casts[node.result.name] = wide
                yield ir.Cast((node.result,), (wide,), node.span, format=fp32)

    return dataclasses.replace(program, nodes=tuple(block(program.nodes)))


def vector_casts(program: Program, taken: Collection[str] = ()) -> list[Cut]:
    """The casts of such vectors that may pass through memory, among `sw.parts.slices.cuts`."""
    if not _has_both(program):
        return []
    found = (each for each in cuts(program, taken) if isinstance(each.node, ir.Cast))
    return [
        each
        for each in found
        if (kind := _row(each.node))
        and kind.format == fp32
        and each.node.values[0].type == dataclasses.replace(kind, format=bf16)
    ]


def _has_both(program: Program) -> bool:
    """Whether element math alone has vectors along the columns of both formats, but for casts."""
    nodes = list(walk(program.nodes))
    if any(isinstance(each, ir.Matmul | ir.Scatter) for each in nodes):
        return False
    made = (each for each in nodes if isinstance(each, ir.Load | ir.Map))
    return {bf16, fp32} <= {kind.format for each in made if (kind := _row(each))}


def _row(node: ir.Node) -> TileType | None:
    """Type of the one result of a node, if it is a vector along the columns."""
    kind = node.results[0].type if len(node.results) == 1 else None
    is_row = isinstance(kind, TileType) and kind.rows.size == 1 != kind.cols.size
    return kind if is_row and isinstance(kind, TileType) else None
