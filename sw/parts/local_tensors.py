"""Tensors of `tw.local` in memory: the program in steps, each of stores of some of them.

A store belongs to the first step in which all local tensors that it needs are written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sw.array_spec import ArraySpec
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Role, Tensor
from sw.language.program_error import ProgramError
from sw.parts.order import divisible, ready
from sw.parts.slices import slice_of, stores, with_nodes

__all__ = ["local_arrays", "steps"]


def local_arrays(program: Program) -> tuple[ArraySpec, ...]:
    """Arrays of the local tensors of a program."""
    return tuple(
        ArraySpec(each.name, each.type.shape, each.type.format, output=True)
        for each in program.tensors
        if each.type.role is Role.LOCAL
    )


def steps(program: Program) -> tuple[Program, ...]:
    """Programs that run one after another instead of one with local tensors.

    Each writes local tensors as outputs, and reads those of earlier ones as inputs.

    Parameters
    ----------
    program : Program
        With local tensors, checked.

    Raises
    ------
    ProgramError
        If a tensor that is updated in place would be read or written in another order.
    """
    local = {each.name for each in program.tensors if each.type.role is Role.LOCAL}
    whole = dataclasses.replace(program, tensors=tuple(map(_stored, program.tensors)))
    if last := _scatters(whole):
        stored = with_nodes(whole, _without_scatters(whole.nodes))
        return (*_steps(stored, local), last)
    return _steps(whole, local)


def _steps(whole: Program, local: set[str]) -> tuple[Program, ...]:
    """Steps of a program without scatters, whose local tensors are outputs."""
    left = tuple(stores(whole.nodes))
    unwritten, found = set(local), []
    while left:
        ready_now = [each for each in left if not _loaded(slice_of(whole, [each])) & unwritten]
        taken = _in_order(slice_of(whole, left), left, ready_now)
        found.append(slice_of(whole, taken))
        left = tuple(each for each in left if each not in taken)
        unwritten = {each.view.tensor for each in left} & local
    return tuple(found)


def _scatters(program: Program) -> Program | None:
    """The scatters of a program, which come last; None if it has none.

    Raises
    ------
    ProgramError
        If anything else accesses their tensor.
    """
    nodes = list(walk(program.nodes))
    scatters = [node for node in nodes if isinstance(node, ir.Scatter)]
    tables = {each.view.tensor for each in scatters}
    for each in nodes:
        view = None if isinstance(each, ir.Scatter) else getattr(each, "view", None)
        if view is not None and view.tensor in tables:
            raise ProgramError(
                "unserved",
                f"`{view.tensor}` must be accessed by nothing but `scatter` beside local "
                "tensors: a kernel of its own may load or store it",
                each.span,
                value=view.tensor,
            )
    return slice_of(program, ()) if scatters else None


def _without_scatters(nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
    """The other nodes, at any depth."""
    return tuple(
        each.replace(nodes=_without_scatters(each.body)) if isinstance(each, ir.Loop) else each
        for each in nodes
        if not isinstance(each, ir.Scatter)
    )


def _in_order(
    program: Program, left: Sequence[ir.Store], possible: Sequence[ir.Store]
) -> Sequence[ir.Store]:
    """As many of the possible stores, from the first on, as may come before the others."""
    if len(possible) == len(left):
        return possible
    for count in range(len(possible), 0, -1):
        own = slice_of(program, possible[:count])
        rest = slice_of(program, [each for each in left if each not in possible[:count]])
        if divisible(program) and ready(program, own, rest):
            return possible[:count]
    raise ProgramError(
        "unserved",
        f"`{possible[0].view.tensor}` cannot be stored before the local tensors behind it: "
        "a tensor that is updated in place would be accessed in another order",
        possible[0].span,
        value=possible[0].view.tensor,
    )


def _stored(tensor: Tensor) -> Tensor:
    """A local tensor as an output."""
    if tensor.type.role is not Role.LOCAL:
        return tensor
    return Tensor(tensor.name, dataclasses.replace(tensor.type, role=Role.OUT))


def _loaded(program: Program) -> set[str]:
    return {
        view.tensor
        for node in walk(program.nodes)
        if not isinstance(node, ir.Store) and (view := getattr(node, "view", None)) is not None
    }
