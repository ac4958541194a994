"""Slices of a program: what some stores or values need, and the program that loads a value instead.

A slice has the loads, operations and loops that its results depend on, and no others. A value that
is cut passes through a tensor in memory, in its own format, so its bits do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator

from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, size_symbol
from sw.ir.format_rules import pred
from sw.ir.program import Program
from sw.ir.rewrite import same_nodes, unused, used, walk
from sw.ir.types import Dim, Entry, Role, Space, Tensor, TensorType, TileType, View
from sw.passes.simplify import live

__all__ = ["Cut", "cuts", "reload", "slice_of", "stores", "whole_block", "with_nodes"]


@dataclasses.dataclass(frozen=True)
class Cut:
    """A value that may pass through memory.

    Parameters
    ----------
    value : Value
    tensor : Tensor
        The intermediate tensor, with an axis for each loop over points that the value depends on,
        its rows and its columns.
    view : View
        The part of the tensor that an iteration makes.
    node : Node
        The node that makes the value.
    invariant : bool
        Whether iterations of a loop around the node all make the same value.
    """

    value: ir.Value
    tensor: Tensor
    view: View
    node: ir.Node
    invariant: bool

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        count = 1
        for size in self.tensor.type.shape:
            count *= size
        return count * self.tensor.type.format.bits // 8


def stores(nodes: Iterable[ir.Node]) -> Iterator[ir.Store]:
    """Iterate over the stores, in order."""
    return (node for node in walk(nodes) if isinstance(node, ir.Store))


def with_nodes(program: Program, nodes: tuple[ir.Node, ...]) -> Program:
    """The program of live nodes alone, with the tensors that they access."""
    nodes = _loops_in_use(live(nodes))
    loaded, stored = set(), {each.view.tensor for each in stores(nodes)}
    stored |= {node.view.tensor for node in walk(nodes) if isinstance(node, ir.Scatter)}
    for node in walk(nodes):
        if not isinstance(node, ir.Store) and (view := getattr(node, "view", None)) is not None:
            loaded.add(view.tensor)
    tensors = []
    for each in program.tensors:
        if each.name not in loaded | stored:
            continue
        # What earlier parts have written is read only.
        role = each.type.role if each.name in stored else Role.IN
        if role is not each.type.role:
            each = Tensor(each.name, dataclasses.replace(each.type, role=role))
        tensors.append(each)
    return dataclasses.replace(program, tensors=tuple(tensors), nodes=nodes)


def slice_of(program: Program, kept: Collection[ir.Store], cut: Collection[Cut] = ()) -> Program:
    """The part of a program that some of its stores and some values need.

    Parameters
    ----------
    program : Program
    kept : collection of Store
        The stores that stay.
    cut : collection of Cut
        Values that are stored in their tensors.
    """
    made = {each.value.name: each for each in cut}

    def block(nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Store) and node not in kept:
                continue
            if isinstance(node, ir.Loop):
                body = same_nodes(node.body, list(block(node.body)))
                node = node if body is node.body else node.replace(nodes=body)
            yield node
            for value in node.results:
                if (found := made.get(value.name)) is not None:
                    yield ir.Store((value,), (), node.span, found.view)

    added = tuple(each.tensor for each in cut)
    whole = dataclasses.replace(program, tensors=(*program.tensors, *added))
    return with_nodes(whole, tuple(block(program.nodes)))


def reload(program: Program, cut: Collection[Cut]) -> Program:
    """The program that loads values instead of computing them."""
    made = {each.value.name: each for each in cut}

    def block(nodes: tuple[ir.Node, ...]) -> Iterator[ir.Node]:
        for node in nodes:
            if isinstance(node, ir.Loop):
                body = same_nodes(node.body, list(block(node.body)))
                node = node if body is node.body else node.replace(nodes=body)
            found = [made[each.name] for each in node.results if each.name in made]
            if found:
                unread = tuple(
                    ir.Value(f"{each.name}.cut", each.type) if each.name in made else each
                    for each in node.results
                )
                node = node.replace(results=unread)
            yield node
            for each in found:
                yield ir.Load((), (each.value,), node.span, each.view)

    added = tuple(each.tensor for each in cut)
    whole = dataclasses.replace(program, tensors=(*program.tensors, *added))
    return with_nodes(whole, tuple(block(program.nodes)))


def cuts(program: Program, taken: Collection[str] = ()) -> Iterator[Cut]:
    """Iterate over the computed and used values that can pass through memory, in order.

    A value can if its elements have one place each in a tensor: every loop over blocks that it
    depends on is the whole extent of one of its axes. The points are outermost, except for rows of
    an operand whose products are added over points: all terms of a row lie side by side. Of
    constants those can that a product multiplies.

    Parameters
    ----------
    program : Program
    taken : collection of str
        Names that no intermediate tensor may have.
    """
    depends: dict[str, frozenset[str]] = {}
    changing = {each.name for each in program.tensors if each.type.role is Role.INOUT}
    _note(program.nodes, (), depends, changing)
    names = {*taken, *(each.name for each in program.tensors)}
    terms = set(_terms(program.nodes))
    read = {each.name for node in program.nodes for each in used(node)}
    products = (each for each in walk(program.nodes) if isinstance(each, ir.Matmul))
    factors = {each.name for product in products for each in product.values[:2]}
    for node, loops in _computed(program.nodes, ()):
        for value in node.results:
            if isinstance(node, ir.Full) and value.name not in factors:
                continue
            if value.name not in read:
                continue
            place = _place(value, depends[value.name], loops)
            if place is None:
                continue
            dims, entries = place
            if value.name in terms:
                dims = (*dims[-2:-1], *dims[:-2], *dims[-1:])
                entries = (*entries[-2:-1], *entries[:-2], *entries[-1:])
            assert isinstance(value.type, TileType)
            name = unused(value.name if value.variable else f"value.{value.name}", names)
            kind = TensorType(dims, value.type.format, Space.MEMORY, Role.OUT)
            invariant = any(loop.index not in depends[value.name] for loop in loops)
            yield Cut(value, Tensor(name, kind), View(name, entries), node, invariant)


def _computed(
    nodes: tuple[ir.Node, ...], loops: tuple[ir.Loop, ...]
) -> Iterator[tuple[ir.Node, tuple[ir.Loop, ...]]]:
    """Nodes that make something, each with the loops around it."""
    for node in nodes:
        if isinstance(node, ir.Loop):
            yield from _computed(node.body, (*loops, node))
        if not isinstance(node, ir.Load | ir.Store | ir.Buffer):
            yield node, loops


def _place(
    value: ir.Value, depends: frozenset[str], loops: tuple[ir.Loop, ...]
) -> tuple[tuple[Dim, ...], tuple[Entry, ...]] | None:
    """Axes of a value's tensor, and the entries of its view; None if it has no place in one."""
    kind = value.type
    if not isinstance(kind, TileType) or kind.format == pred:
        return None
    found: list[tuple[Dim, Entry]] = []
    open_blocks = {}
    for loop in loops:
        if loop.index not in depends:
            continue
        if loop.until is not None:
            return None
        if loop.blocks:
            open_blocks[size_symbol(loop.index)] = loop
        else:
            found.append((Dim(loop.index, loop.extent), Entry(Affine.of(loop.index))))
    for name, axis in (("rows", kind.rows), ("cols", kind.cols)):
        if isinstance(axis.size, int):
            if not axis.full:
                return None
            found.append((Dim(name, axis.size), Entry(Affine(), axis)))
            continue
        block = open_blocks.pop(axis.size, None)
        if block is None or axis != whole_block(block):
            return None
        found.append((Dim(name, block.extent), Entry(Affine.of(block.index), axis)))
    if open_blocks:
        return None
    return tuple(dim for dim, _ in found), tuple(entry for _, entry in found)


def _terms(nodes: tuple[ir.Node, ...]) -> Iterator[str]:
    """Names of the operands whose rows are terms of sums carried by loops over points."""
    for loop in walk(nodes):
        if isinstance(loop, ir.Loop) and not loop.blocks and loop.carries:
            for node in walk(loop.body):
                if isinstance(node, ir.Matmul) and len(node.operands) == 3:
                    if not node.ta:
                        yield node.values[0].name
                    if node.tb:
                        yield node.values[1].name


def whole_block(loop: ir.Loop) -> Axis:
    """The axis of a loop's block, clipped at the loop's extent."""
    return Axis(size_symbol(loop.index), (Affine((), loop.extent) - Affine.of(loop.index),))


def _note(
    nodes: tuple[ir.Node, ...],
    around: tuple[str, ...],
    depends: dict[str, frozenset[str]],
    changing: Collection[str],
) -> None:
    """Note the loop indices that each value depends on."""
    for node in nodes:
        before = [depends[each.name] for each in node.values]
        if not isinstance(node, ir.Loop):
            own = node.symbols.union(*before)
            view = getattr(node, "view", None)
            if view is not None and view.tensor in changing:
                own |= frozenset(around)
            depends.update((each.name, own) for each in node.results)
            continue
        own = frozenset({node.index})
        if node.until is not None:
            own |= frozenset(node.until.symbols)
        state = [own | each for each in before]
        while True:
            depends.update((each.name, kind) for each, kind in zip(node.carries, state))
            _note(node.body, (*around, node.index), depends, changing)
            after = [old | depends[each.name] for old, each in zip(state, node.nexts)]
            if after == state:
                break
            state = after
        depends.update((each.name, kind - {node.index}) for each, kind in zip(node.results, state))


def _loops_in_use(nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
    """The nodes without loops whose iterations are all the same."""
    found: list[ir.Node] = []
    for node in nodes:
        if isinstance(node, ir.Loop):
            body = _loops_in_use(node.body)
            node = node if body is node.body else node.replace(nodes=body)
            idle = not node.carries and node.until is None
            if idle and node.index not in node.symbols:
                found.extend(node.body)
                continue
        found.append(node)
    return same_nodes(nodes, found)
