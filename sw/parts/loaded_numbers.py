"""Numbers made of the index of a loop that runs as launches: no image depends on the iteration.

So the numbers of all iterations are stored before the loop, as a local tensor, and each iteration
loads its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

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
        starts = dict.fromkeys(_starts(node))
        made = {}
        for start in starts:
            tensor = _tensor(node, {each.name for each in tensors})
            tensors.append(tensor)
            made[start] = tensor
            nodes += _stores(start, tensor, node, names)
        nodes.append(_loading(node, made) if made else node)
    if len(tensors) == len(program.tensors):
        return program
    whole = dataclasses.replace(program, tensors=tuple(tensors))
    return verify(whole.after("loaded_numbers", tuple(nodes)))


def _starts(node: ir.Node) -> Iterator[Affine]:
    """The numbers of one element that a loop of `tw.repeat` makes of its index alone."""
    if isinstance(node, ir.Loop) and node.mode == "repeat":
        for each in walk(node.body):
            if isinstance(each, ir.Iota) and each.rows.one and each.cols.one:
                if each.start.symbols == (node.index,):
                    yield each.start


def _tensor(node: ir.Node, taken: set[str]) -> Tensor:
    """The numbers of all iterations, a row each."""
    assert isinstance(node, ir.Loop)
    dims = (Dim(node.index, node.extent), Dim("cols", 1))
    kind = TensorType(dims, int32, Space.MEMORY, Role.LOCAL)
    return Tensor(unused(f"{node.index}.numbers", taken), kind)


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


def _loading(loop: ir.Node, made: dict[Affine, Tensor]) -> ir.Node:
    """A loop whose iterations load their numbers."""
    assert isinstance(loop, ir.Loop)
    index = Affine.of(loop.index)

    def loaded(item: Any) -> Any:
        number = isinstance(item, ir.Iota) and item.rows.one and item.cols.one
        if not number or item.start not in made:
            return item
        view = View(made[item.start].name, (Entry(index), _ONE))
        return ir.Load((), item.results, item.span, view)

    changed = rebuild(loop, loaded)
    assert isinstance(changed, ir.Loop)
    return changed
