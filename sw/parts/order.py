"""Order of loads and stores of tensors updated in place, which parts of a program must keep."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import used, walk
from sw.ir.types import Role
from sw.parts.slices import stores

__all__ = ["divisible", "out_of_place", "ready", "written_first"]

_Access = ir.Load | ir.Store


def divisible(program: Program) -> bool:
    """Whether the order of a program's parts can be that of its text, iterations disregarded.

    It can if iterations of a loop around two accesses of a tensor that is updated in place, one of
    them a store, access different elements.
    """
    accesses = list(_accesses(program.nodes, ()))
    for store, around in accesses:
        if not isinstance(store, ir.Store) or store.view.tensor not in _changing(program):
            continue
        for other, loops in accesses:
            if other.view.tensor != store.view.tensor:
                continue
            common = [loop for loop in loops if loop in around]
            if not all(_apart(store, other, loop) for loop in common):
                return False
    changing = _changing(program)
    return not any(
        isinstance(node, ir.Take | ir.Scatter)
        or (isinstance(node, ir.Gather) and node.view.tensor in changing)
        for node in walk(program.nodes)
    )


def ready(program: Program, part: Program, rest: Program) -> bool:
    """Whether a part of a program may run now, before the rest of it.

    Parameters
    ----------
    program : Program
        What has not run yet; `divisible`.
    part, rest : Program
        The part, and what then remains.
    """
    order = [node for node, _ in _accesses(program.nodes, ())]
    mine, left = ([node for node, _ in _accesses(each.nodes, ())] for each in (part, rest))
    for name in _changing(program):
        wrote = [node for node in stores(part.nodes) if node.view.tensor == name]
        if len(wrote) > 1:
            return False
        for node in order:
            if node.view.tensor != name or not any(_same(node, each) for each in mine):
                continue
            before = [each for each in order[: order.index(node)] if each.view.tensor == name]
            if any(isinstance(each, ir.Store) for each in before):
                return False
            if isinstance(node, ir.Load):
                continue
            for each in before:
                if any(_same(each, other) for other in left):
                    return False
                if any(_same(each, other) for other in mine) and each.view != node.view:
                    return False
    return True


def written_first(program: Program) -> set[str]:
    """Tensors updated in place all of whose stores come before all their loads.

    No loop has both. So a load may stand anywhere behind the one that comes first.
    """
    loaded: set[str] = set()
    late: set[str] = set()
    for node in program.nodes:
        every = [*walk((node,))]
        written = {each.view.tensor for each in stores(every)}
        written |= {each.view.tensor for each in every if isinstance(each, ir.Scatter)}
        views = [getattr(each, "view", None) for each in every if not isinstance(each, ir.Store)]
        loaded |= {each.tensor for each in views if each is not None}
        late |= written & loaded
    return _changing(program) - late


def out_of_place(program: Program) -> ir.Store | None:
    """A store that overwrites elements of which other elements depend, or None.

    Of an element or a row only what is at the same place may depend: a product, a transpose and
    pieces of columns are elsewhere. So what they make passes through memory before it is stored.
    """
    return next((each for name in _changing(program) for each in _moved(program, name)), None)


def _moved(program: Program, name: str) -> Iterator[ir.Store]:
    """Stores to a tensor of what depends on its elements in other places."""
    read: set[str] = set()
    moved: set[str] = set()
    # Results of a loop depend on its body, which stands behind it.
    for node in (*walk(program.nodes), *walk(program.nodes)):
        taken, results = ({each.name for each in values} for values in (used(node), node.results))
        operands = {each.name for each in node.values[:2]}
        if isinstance(node, ir.Store) and node.view.tensor == name and taken & moved:
            yield node
        if isinstance(node, ir.Load) and node.view.tensor == name:
            read |= results
        elif taken & moved:
            moved |= results
        elif isinstance(node, ir.Matmul | ir.Transpose | ir.Columns | ir.Join) and operands & read:
            moved |= results
        elif taken & read:
            read |= results


def _same(one: _Access, other: _Access) -> bool:
    return type(one) is type(other) and (one.view, one.results) == (other.view, other.results)


def _changing(program: Program) -> set[str]:
    return {each.name for each in program.tensors if each.type.role is Role.INOUT}


def _accesses(
    nodes: Collection[ir.Node], around: tuple[ir.Loop, ...]
) -> Iterator[tuple[_Access, tuple[ir.Loop, ...]]]:
    """Nodes that access tensors, in order, each with the loops around it."""
    for node in nodes:
        if isinstance(node, ir.Loop):
            yield from _accesses(node.body, (*around, node))
        elif isinstance(node, ir.Load | ir.Store):
            yield node, around


def _apart(one: _Access, other: _Access, loop: ir.Loop) -> bool:
    """Whether different iterations of a loop access different elements."""
    return any(
        mine == theirs and mine.start.symbols == (loop.index,)
        for mine, theirs in zip(one.view.entries, other.view.entries)
    )
