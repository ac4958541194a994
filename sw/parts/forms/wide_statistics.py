"""Whole numbers as floats: int8 tiles, what is computed of them, and sums of constants.

Lanes keep no statistics of a source of int8, sum no int32 and multiply none. A cast of an int8 tile
to bf16 is exact and can pass through memory, and so is arithmetic in fp32 on whole numbers that
stay within 2^24. Comparisons with such a number take floats, too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from sw.ir import nodes as ir
from sw.ir.element_operations import OPERATIONS
from sw.ir.format_rules import Format, bf16, fp32, int8, int32
from sw.ir.infer import infer
from sw.ir.program import Program
from sw.ir.rewrite import Names
from sw.ir.types import TileType
from sw.lane_codes.lane_number import EXACT
from sw.passes.simplify import live

__all__ = ["with_wide_statistics"]

#: The greatest magnitude of a result by those of the operands.
_GREATEST: dict[str, Callable[[Sequence[int]], int]] = {
    "add": sum,
    "sub": sum,
    "mul": math.prod,
    "where": max,
    "min": max,
    "max": max,
    "abs": max,
    "neg": max,
}


@dataclasses.dataclass(frozen=True)
class _Whole:
    """A tile of whole numbers as floats, and the greatest magnitude that one may have."""

    value: ir.Value
    most: int


def with_wide_statistics(program: Program) -> Program:
    """The program that computes with whole numbers as floats where no result changes."""
    names = Names(program)
    wide: dict[str, _Whole] = {}

    def entered(node: ir.Node, like: ir.Value) -> ir.Node:
        (type_,) = infer(node, {})
        assert isinstance(type_, TileType)
        return node.replace(results=(names.fresh(like, type_),))

    def floats(operand: ir.Operand) -> ir.Operand:
        if isinstance(operand, ir.Constant):
            return ir.Constant(float(operand.value))
        return wide[operand.name].value if operand.name in wide else operand

    def block(nodes: Sequence[ir.Node]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                yield node.replace(nodes=tuple(block(node.body)))
            elif (most := _most(node, wide)) is not None:
                operands = tuple(map(floats, node.operands))
                found = entered(node.replace(operands=operands), node.result)
                wide[node.result.name] = _Whole(found.result, most)
                kind = node.result.type
                assert isinstance(kind, TileType)
                yield found
                yield ir.Cast((found.result,), (node.result,), node.span, format=kind.format)
            elif isinstance(node, ir.Map) and _compares_wide(node, wide):
                yield node.replace(operands=tuple(map(floats, node.operands)))
            else:
                yield node
            if isinstance(node, ir.Load) and _format(node.result) == int8:
                cast = entered(ir.Cast((node.result,), (), node.span, format=bf16), node.result)
                wide[node.result.name] = _Whole(cast.result, 1 << int8.bits - 1)
                yield cast

    nodes = tuple(block(program.nodes))
    if not any(_format(each.value) == fp32 for each in wide.values()):
        return program
    return dataclasses.replace(program, nodes=live(nodes))


def _format(value: ir.Value) -> Format | None:
    return value.type.format if isinstance(value.type, TileType) else None


def _most(node: ir.Node, wide: Mapping[str, _Whole]) -> int | None:
    """The greatest magnitude of a node's whole numbers, if floats hold all of them; else None."""
    if not isinstance(node, ir.Map | ir.Reduce) or _format(node.result) not in (int8, int32):
        return None
    operands = node.operands[1:] if node.op == "where" else node.operands
    sizes = []
    for each in operands:
        if isinstance(each, ir.Constant):
            sizes.append(abs(int(each.value)))
        elif each.name in wide:
            sizes.append(wide[each.name].most)
        else:
            return None
    if isinstance(node, ir.Reduce):
        kind = node.values[0].type
        assert isinstance(kind, TileType)
        count = kind.axis(node.axis).size if node.op == "sum" else 1
        if node.op not in ("sum", "max", "min") or not isinstance(count, int):
            return None
        most = count * sizes[0]
    elif node.op in _GREATEST:
        most = _GREATEST[node.op](sizes)
    else:
        return None
    return most if most <= EXACT else None


def _compares_wide(node: ir.Map, wide: Mapping[str, _Whole]) -> bool:
    """Whether a node compares a statistic with tiles and constants that are floats, too."""
    if node.op not in OPERATIONS or not OPERATIONS[node.op].compares:
        return False
    values = {each.name for each in node.values}
    constants = [each.value for each in node.operands if isinstance(each, ir.Constant)]
    return (
        values <= wide.keys()
        and any(_format(wide[each].value) == fp32 for each in values)
        and all(abs(each) <= EXACT for each in constants)
    )
