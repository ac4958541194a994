"""Casts of bf16 to fp32 before element math, which takes both alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from sw.ir import nodes as ir
from sw.ir.format_rules import bf16, fp32
from sw.ir.infer import exchanged
from sw.ir.program import Program
from sw.ir.rewrite import same_nodes, walk
from sw.ir.types import TileType
from sw.passes.simplify import live

__all__ = ["without_widening_casts"]


def without_widening_casts(program: Program) -> Program:
    """The program whose element operations and reductions take bf16 tiles instead of their casts.

    Casts that others need stay. No result changes.
    """
    sources = {each.result.name: each.operands[0] for each in walk(program.nodes) if _widens(each)}

    def block(nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                body = same_nodes(node.body, list(block(node.body)))
                node = node if body is node.body else node.replace(nodes=body)
            yield exchanged(node, sources) if isinstance(node, ir.Map | ir.Reduce) else node

    if not sources:
        return program
    return dataclasses.replace(program, nodes=live(tuple(block(program.nodes))))


def _widens(node: ir.Node) -> bool:
    if not isinstance(node, ir.Cast):
        return False
    source, result = node.values[0].type, node.result.type
    return (
        isinstance(source, TileType)
        and isinstance(result, TileType)
        and (source.format, result.format) == (bf16, fp32)
    )
