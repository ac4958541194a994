"""Numbers made of the index of a loop that runs as launches: no image depends on the iteration.

So the numbers of all iterations are stored before the loop, as a local tensor, and each iteration
loads its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Set
from typing import Any, TypeGuard

from hw.numeric.formats import int32
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis
from sw.ir.program import Program
from sw.ir.rewrite import Names, rebuild, unused, walk
from sw.ir.types import Dim, Entry, Role, Space, Tensor, TensorType, TileType, View
from sw.ir.verify import verify

__all__ = ["with_loaded_numbers"]

_ONE = Entry(Affine(), Axis(1))


def with_loaded_numbers(program: Program) -> Program:
    """Load the numbers that loops of `tw.repeat` make of their indices.

    Parameters
    ----------
    program : Program
        After `simplify`.
    """
    names = Names(program)
    tensors, nodes = list(program.tensors), list[ir.Node]()
    for node in program.nodes:
        node = _apart(node, _repeated(node).keys(), names)
        made = dict[Affine, Tensor]()
        for loop, start in _starts(node):
            if start not in made:
                made[start] = _tensor(loop, {each.name for each in tensors})
                tensors.append(made[start])
                nodes += _stores(start, made[start], loop, names)
        nodes.append(_loading(node, made) if made else node)
    if len(tensors) == len(program.tensors):
        return program
    whole = dataclasses.replace(program, tensors=tuple(tensors))
    return verify(whole.after("loaded_numbers", tuple(nodes)))


def _repeated(node: ir.Node) -> dict[str, ir.Loop]:
    """Loops of `tw.repeat` by their indices: a node and those inside it."""
    loops = (each for each in walk((node,)) if isinstance(each, ir.Loop))
    return {each.index: each for each in loops if each.mode == "repeat"}


def _apart(node: ir.Node, repeated: Set[str], names: Names) -> ir.Node:
    """A node whose numbers of one element are of one index each, and sums of such."""
    if not repeated or not node.body:
        return node
    found = list[ir.Node]()
    for each in node.body:
        if not _is_number(each) or repeated.isdisjoint(each.start.symbols):
            found.append(_apart(each, repeated, names))
            continue
        (symbol, factor), *others = each.start.terms
        total: ir.Node = each.replace(start=Affine(((symbol, factor),), each.start.constant))
        for term in others:
            number = each.replace(start=Affine((term,)), results=(names.fresh(each.result),))
            total = total.replace(results=(names.fresh(each.result),))
            found += [total, number]
            total = ir.Map((total.result, number.result), each.results, each.span, op="add")
        found.append(total)
    return node.replace(nodes=tuple(found))


def _is_number(node: ir.Node) -> TypeGuard[ir.Iota]:
    return isinstance(node, ir.Iota) and node.rows.one and node.cols.one


def _starts(node: ir.Node) -> Iterator[tuple[ir.Loop, Affine]]:
    """The numbers of one element that each loop of `tw.repeat` makes of its index alone."""
    for loop in _repeated(node).values():
        for each in walk(loop.body):
            if _is_number(each) and each.start.symbols == (loop.index,):
                yield loop, each.start


def _tensor(loop: ir.Loop, taken: set[str]) -> Tensor:
    """The numbers of all iterations, a row each."""
    dims = (Dim(loop.index, loop.extent), Dim("cols", 1))
    kind = TensorType(dims, int32, Space.MEMORY, Role.LOCAL)
    return Tensor(unused(f"{loop.index}.numbers", taken), kind)


def _stores(start: Affine, tensor: Tensor, near: ir.Node, names: Names) -> Iterator[ir.Node]:
    """Nodes that store the numbers of all iterations."""
    rows = Axis(tensor.type.shape[0])
    kind = TileType(rows, Axis(1), int32)

    def named() -> tuple[ir.Value]:
        return (names.fresh(ir.Value("1", kind)),)

    made: ir.Node = ir.Iota((), named(), near.span, Affine(), 0, rows, Axis(1))
    yield made
    ((_, factor),) = start.terms
    if abs(factor) != 1:
        made = ir.Map((made.result, ir.Constant(abs(factor))), named(), near.span, op="mul")
        yield made
    if factor < 0 or start.constant:
        # Lanes subtract, but multiply whole numbers by powers of two alone.
        operands = (ir.Constant(start.constant), made.result)
        made = ir.Map(operands, named(), near.span, op="sub" if factor < 0 else "add")
        yield made
    view = View(tensor.name, (Entry(Affine(), rows), _ONE))
    yield ir.Store((made.result,), (), near.span, view)


def _loading(node: ir.Node, made: dict[Affine, Tensor]) -> ir.Node:
    """A loop whose iterations, and those of loops inside it, load their numbers."""

    def loaded(item: Any) -> Any:
        if not _is_number(item) or item.start not in made:
            return item
        (index,) = item.start.symbols
        view = View(made[item.start].name, (Entry(Affine.of(index)), _ONE))
        return ir.Load((), item.results, item.span, view)

    changed = rebuild(node, loaded)
    assert isinstance(changed, ir.Node)
    return changed
