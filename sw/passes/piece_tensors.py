"""Local tensors for computed tiles that are split, and for tiles that are joined to be used whole.

Pieces of a computed tile are then loaded, and those that are joined are stored, as those of inputs
and outputs are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import same_nodes, walk
from sw.ir.types import Role, Tensor
from sw.parts.slices import Cut, cuts, slice_of

__all__ = ["with_piece_tensors"]


def with_piece_tensors(program: Program, left_out: Collection[str]) -> Program:
    """The program that stores computed tiles which are split, then joined ones that are used whole.

    Parameters
    ----------
    program : Program
        After `simplify`.
    left_out : collection of str
        Names of local tensors that it does not get.
    """
    for kind in (_is_split, _is_joined):
        names = {each.name for each in program.tensors}
        wanted = [
            each
            for each in cuts(program, names)
            if each.tensor.name not in left_out
            and kind(program, each)
            and _is_reduced(slice_of(program, (), [each]))
        ]
        program = _with_tensors(program, {each.value.name: each for each in wanted})
    return program


def _is_split(program: Program, cut: Cut) -> bool:
    """Whether a value that is no piece itself is split."""
    splits = (each for each in walk(program.nodes) if isinstance(each, ir.Columns))
    return not isinstance(cut.node, ir.Columns) and any(cut.value in each.values for each in splits)


def _is_joined(program: Program, cut: Cut) -> bool:
    """Whether a value is joined, perhaps cast then, and not only to be stored."""
    joined = (each.result for each in walk(program.nodes) if isinstance(each, ir.Join))
    found = any(cut.value == _cast(program, each) for each in joined)
    return found and not _is_stored(program.nodes, cut.value)


def _cast(program: Program, value: ir.Value) -> ir.Value:
    """Result of the cast that is the only use of a value; the value itself if there is none."""
    users = [
        node for node in walk(program.nodes) if value in (*node.values, *getattr(node, "nexts", ()))
    ]
    return users[0].result if len(users) == 1 and isinstance(users[0], ir.Cast) else value


def _with_tensors(program: Program, taken: Mapping[str, Cut]) -> Program:
    """The program that stores some values in local tensors, and loads them from there."""
    if not taken:
        return program
    tensors = (
        Tensor(each.tensor.name, dataclasses.replace(each.tensor.type, role=Role.LOCAL))
        for each in taken.values()
    )
    return dataclasses.replace(
        program,
        tensors=(*program.tensors, *tensors),
        nodes=_block(program.nodes, taken),
    )


def _block(nodes: tuple[ir.Node, ...], taken: Mapping[str, Cut]) -> tuple[ir.Node, ...]:
    return same_nodes(nodes, list(_stored(nodes, taken)))


def _stored(nodes: tuple[ir.Node, ...], taken: Mapping[str, Cut]) -> Iterator[ir.Node]:
    for node in nodes:
        if isinstance(node, ir.Loop):
            node = node.replace(nodes=_block(node.body, taken))
        own = [taken[each.name] for each in node.results if each.name in taken]
        made = {
            each.value.name: ir.Value(f"{each.value.name}.made", each.value.type) for each in own
        }
        yield node.replace(results=tuple(made.get(each.name, each) for each in node.results))
        for each in own:
            yield ir.Store((made[each.value.name],), (), node.span, each.view)
            yield ir.Load((), (each.value,), node.span, each.view)


def _is_stored(nodes: Collection[ir.Node], value: ir.Value) -> bool:
    """Whether a value is used in stores alone, perhaps after element math."""
    found = {value}
    every = list(walk(nodes))
    # What is made of a value stands behind it.
    for node in every:
        if isinstance(node, ir.Store) or found.isdisjoint(node.values):
            continue
        if not isinstance(node, ir.Map | ir.Cast):
            return False
        found.add(node.result)
    return all(found.isdisjoint(each.nexts) for each in every if isinstance(each, ir.Loop))


def _is_reduced(program: Program) -> bool:
    """Whether a slice has products or reductions, whose results are no columns of loaded tiles."""
    return any(isinstance(each, ir.Matmul | ir.Reduce) for each in walk(program.nodes))
