"""Reductions of int8 tiles as those of bf16: lanes keep no statistics of a source of int8.

A cast of an int8 tile to bf16 is exact and can pass through memory, and so are sums in fp32 that
stay within 2^24. Comparisons with such a reduction take the cast tile, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from sw.ir import nodes as ir
from sw.ir.element_operations import OPERATIONS
from sw.ir.format_rules import Format, bf16, fp32, int8
from sw.ir.infer import infer
from sw.ir.program import Program
from sw.ir.rewrite import Names, map_operands
from sw.ir.types import TileType
from sw.passes.simplify import live

__all__ = ["with_wide_statistics"]

#: Whole numbers up to this one are exact in fp32.
_EXACT = 1 << 24


def with_wide_statistics(program: Program) -> Program:
    """The program whose reductions of loaded int8 tiles are of casts to bf16; no result changes."""
    names = Names(program)
    #: Tiles and statistics of int8 as floats, by name.
    wide: dict[str, ir.Value] = {}

    def entered(node: ir.Node, like: ir.Value) -> ir.Node:
        (type_,) = infer(node, {})
        assert isinstance(type_, TileType)
        return node.replace(results=(names.fresh(like, type_),))

    def block(nodes: Sequence[ir.Node]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                yield node.replace(nodes=tuple(block(node.body)))
            elif isinstance(node, ir.Reduce) and _is_exact(node) and node.values[0].name in wide:
                operand = wide[node.values[0].name]
                found = entered(node.replace(operands=(operand,)), node.result)
                wide[node.result.name] = found.result
                kind = node.result.type
                assert isinstance(kind, TileType)
                yield found
                yield ir.Cast((found.result,), (node.result,), node.span, format=kind.format)
            elif isinstance(node, ir.Map) and _compares_wide(node, wide):
                yield map_operands(
                    node, lambda each: wide[each.name] if isinstance(each, ir.Value) else each
                )
            else:
                yield node
            if isinstance(node, ir.Load) and _format(node.result) == int8:
                cast = entered(ir.Cast((node.result,), (), node.span, format=bf16), node.result)
                wide[node.result.name] = cast.result
                yield cast

    nodes = tuple(block(program.nodes))
    if not any(_format(each) == fp32 for each in wide.values()):
        return program
    return dataclasses.replace(program, nodes=live(nodes))


def _format(value: ir.Value) -> Format | None:
    return value.type.format if isinstance(value.type, TileType) else None


def _is_exact(node: ir.Reduce) -> bool:
    """Whether a reduction of int8 has the same result in fp32."""
    (value,) = node.values
    if not isinstance(value.type, TileType) or value.type.format != int8:
        return False
    size = value.type.axis(node.axis).size
    sums = node.op not in ("max", "min")
    return not sums or (isinstance(size, int) and size << int8.bits - 1 <= _EXACT)


def _compares_wide(node: ir.Map, wide: dict[str, ir.Value]) -> bool:
    """Whether a node compares a statistic with tiles and constants that are floats, too."""
    if node.op not in OPERATIONS or not OPERATIONS[node.op].compares:
        return False
    values = {each.name for each in node.values}
    constants = [each.value for each in node.operands if isinstance(each, ir.Constant)]
    return (
        values <= wide.keys()
        and any(_format(wide[each]) == fp32 for each in values)
        and all(abs(each) <= _EXACT for each in constants)
    )
