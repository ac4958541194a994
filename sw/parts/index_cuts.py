"""Tensors that the index of a loop of launches cuts: they begin elsewhere in each iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.array_spec import ArraySpec
from sw.ir import nodes as ir
from sw.ir.affine import Affine
from sw.ir.program import Program
from sw.ir.rewrite import unused, walk
from sw.ir.types import Entry, Role, Tensor, View
from sw.language.program_error import ProgramError
from sw.parts.part import Argument

__all__ = ["without_index"]


@dataclasses.dataclass(frozen=True)
class _Cut:
    """Part of a tensor that an iteration accesses, `step` bytes further on than the one before.

    Parameters
    ----------
    tensor : str
    step, first : int
        Bytes, and the number of the first axis that iteration 0 accesses.
    inner : bool
        Whether the iteration accesses a tensor without that axis.
    """

    tensor: str
    step: int
    first: int
    inner: bool


def without_index(
    loop: ir.Loop, program: Program, specs: Mapping[str, ArraySpec], names: set[str]
) -> tuple[tuple[ir.Node, ...], list[Tensor], dict[str, Argument]]:
    """The body of a loop with a tensor for each cut of one by the index.

    Parameters
    ----------
    loop : Loop
        Its iterations are launches.
    program : Program
        The program that the loop is in.
    specs : mapping of str to ArraySpec
        Arrays of the program's tensors, by their names.
    names : set of str
        Names of all tensors; those of new ones are added.

    Returns
    -------
    tuple of Node
        The body.
    list of Tensor
        The tensors.
    dict of str to Argument
        Where each of them begins, with the bytes from one iteration to the next.

    Raises
    ------
    ProgramError
        If the index does anything but cut tensors, or a tensor that the loop updates is cut in
        several ways.
    """
    made: dict[_Cut, Tensor] = {}

    def change(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Loop):
            node = node.replace(nodes=tuple(map(change, node.body)))
        view = getattr(node, "view", None)
        if view is not None and loop.index in view.symbols:
            cut, entries = _cut(view, loop.index, specs[view.tensor])
            if cut not in made:
                made[cut] = _beginning(program.tensor(view.tensor), cut, names)
            node = node.replace(view=View(made[cut].name, entries))
        return node

    body = tuple(map(change, loop.body))
    for node in walk(body):
        inner = node.replace(nodes=()) if isinstance(node, ir.Loop) else node
        if loop.index in inner.symbols:
            raise ProgramError(
                "unserved",
                f"The index `{loop.index}` of a loop that runs as launches must be an index of "
                "tensors, as in `W[n]`, or a number of element math",
                node.span or loop.span,
                value=loop.index,
            )
    _require_one_cut(loop, program, body, made)
    cuts = {
        tensor.name: Argument(cut.tensor, specs[cut.tensor].steps[0] * cut.first, cut.step)
        for cut, tensor in made.items()
    }
    return body, list(made.values()), cuts


def _cut(view: View, index: str, spec: ArraySpec) -> tuple[_Cut, tuple[Entry, ...]]:
    """How an index cuts a tensor, and the view of what iteration 0 accesses."""
    moved = [dict(each.start.terms).get(index, 0) for each in view.entries]
    step = sum(factor * size for factor, size in zip(moved, spec.steps))
    first, *others = view.entries
    if others and first.axis is None and first.start.symbols == (index,) and not any(moved[1:]):
        return _Cut(view.tensor, step, first.start.constant, inner=True), tuple(others)
    entries = tuple(
        Entry(each.start - Affine.of(index) * factor, each.axis) if factor else each
        for each, factor in zip(view.entries, moved)
    )
    return _Cut(view.tensor, step, 0, inner=False), entries


def _beginning(tensor: Tensor, cut: _Cut, names: set[str]) -> Tensor:
    """A tensor that begins where iteration 0 does, or elsewhere in others."""
    name = unused(tensor.name, names)
    names.add(name)
    if cut.inner:
        return Tensor(name, dataclasses.replace(tensor.type, dims=tensor.type.dims[1:]))
    # No iteration writes all of it.
    role = Role.IN if tensor.type.role is Role.IN else Role.INOUT
    return Tensor(name, dataclasses.replace(tensor.type, role=role))


def _require_one_cut(
    loop: ir.Loop, program: Program, body: tuple[ir.Node, ...], made: Mapping[_Cut, Tensor]
) -> None:
    """Refuse tensors that the loop updates and that an iteration accesses in several ways."""
    whole = {node.view.tensor for node in walk(body) if isinstance(node, ir.Load | ir.Store)}
    for tensor in program.tensors:
        ways = [cut for cut in made if cut.tensor == tensor.name]
        if tensor.type.role is not Role.IN and len(ways) + (tensor.name in whole) > 1:
            raise ProgramError(
                "unserved",
                f"`{tensor.name}`, which a loop of `tw.repeat` updates, must be indexed by "
                f"`{loop.index}` in one way in all its loads and stores",
                loop.span,
                value=tensor.name,
            )
