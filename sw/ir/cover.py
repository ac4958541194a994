"""Proof that every output element is written exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from sw.ir.affine import Affine, Axis, size_symbol
from sw.ir.nodes import Loop, Node, Store
from sw.ir.program import Program
from sw.ir.types import Entry, Role, Tensor, View

__all__ = ["CoverError", "check_cover"]

# Starts of one axis that are enumerated; beyond it a program is refused.
_MOST = 1 << 20

#: Disjoint ``[start, stop)`` in ascending order.
_Intervals = tuple[tuple[int, int], ...]


class CoverError(ValueError):
    """An output that is not provably written exactly once.

    Parameters
    ----------
    node : Node or None
        The store at fault; None if there is none.
    message : str
        What is wrong.
    """

    def __init__(self, node: Node | None, message: str) -> None:
        super().__init__(message)
        self.node = node


def check_cover(program: Program) -> None:
    """Check that every output element is written exactly once and that no output is read.

    A local tensor is written like an output, before the nodes that read it.

    Stores are compared as boxes: per axis of the tensor, the elements that all iterations write.

    Raises
    ------
    CoverError
        At the first store, or the first output, for which this cannot be shown.
    """
    written = (Role.OUT, Role.LOCAL)
    stores: dict[str, list[tuple[Store, tuple[Loop, ...]]]] = {}
    for node, loops in _accesses(program.nodes, ()):
        view = getattr(node, "view", None)
        if view is None:
            continue
        role = program.tensor(view.tensor).type.role
        writes = isinstance(node, Store)
        if writes and role is Role.IN:
            raise CoverError(node, f"`{view.tensor}` is an input and cannot be written")
        if not writes and role is Role.OUT:
            raise CoverError(
                node,
                f"`{view.tensor}` is an output and cannot be read: name it on both sides to "
                "update it in place",
            )
        if isinstance(node, Store) and role in written:
            stores.setdefault(view.tensor, []).append((node, loops))
    for tensor in program.tensors:
        if tensor.type.role in written:
            _check_tensor(tensor, stores.get(tensor.name, []))
        if tensor.type.role is Role.LOCAL:
            _check_order(tensor, program.nodes)


def _accesses(
    nodes: tuple[Node, ...], loops: tuple[Loop, ...]
) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    for node in nodes:
        yield node, loops
        inner = (*loops, node) if isinstance(node, Loop) else loops
        yield from _accesses(node.body, inner)


def _check_order(tensor: Tensor, nodes: tuple[Node, ...]) -> None:
    """Refuse a load of a local tensor that does not stand behind all stores of what it loads.

    It does in a later loop, also inside loops whose iterations each access their own elements.
    """
    pairs = [(node, list(_accesses_of(tensor, node))) for node in nodes]
    stores = [n for n, (_, every) in enumerate(pairs) if any(isinstance(x, Store) for x in every)]
    for number, (node, every) in enumerate(pairs):
        load = next((each for each in every if not isinstance(each, Store)), None)
        if load is None or number > stores[-1]:
            continue
        views = [view for each in every if (view := getattr(each, "view", None)) is not None]
        if number < stores[-1] or not isinstance(node, Loop) or not _apart(views, node):
            raise CoverError(
                load,
                f"`{tensor.name}` is local and must be stored whole before the loop that loads it; "
                "inside one loop use the tile itself",
            )
        _check_order(tensor, node.body)


def _accesses_of(tensor: Tensor, node: Node) -> Iterator[Node]:
    """Nodes that access a tensor."""
    for each, _ in _accesses((node,), ()):
        view = getattr(each, "view", None)
        if view is not None and view.tensor == tensor.name:
            yield each


def _apart(views: list[View], loop: Loop) -> bool:
    """Whether iterations of a loop access different elements: all select alike along one axis."""
    columns = zip(*(view.entries for view in views))
    return any(
        len(set(entries)) == 1 and entries[0].start.symbols == (loop.index,) for entries in columns
    )


def _check_tensor(tensor: Tensor, stores: list[tuple[Store, tuple[Loop, ...]]]) -> None:
    boxes: list[tuple[Store, tuple[_Intervals, ...]]] = []
    for store, loops in stores:
        box = tuple(_box(tensor, store, loops))
        for _, other in boxes:
            if all(_meet(mine, theirs) for mine, theirs in zip(box, other)):
                raise CoverError(store, f"`{tensor.name}` is written more than once here")
        boxes.append((store, box))
    written = sum(prod(sum(b - a for a, b in axis) for axis in box) for _, box in boxes)
    total = prod(tensor.type.shape)
    if written != total:
        last = boxes[-1][0] if boxes else None
        raise CoverError(
            last, f"`{tensor.name}` must be written whole, not {written} of its {total} elements"
        )


def _box(tensor: Tensor, store: Store, loops: tuple[Loop, ...]) -> Iterator[_Intervals]:
    """Elements that a store writes over all iterations, axis by axis."""
    by_index = {loop.index: loop for loop in loops}
    entries = store.view.entries
    for loop in loops:
        users = sum(loop.index in entry.start.symbols for entry in entries)
        many = loop.extent > 1 and (not loop.blocks or loop.tile is None or loop.tile < loop.extent)
        if many and not users:
            raise CoverError(
                store,
                f"`{tensor.name}` is written again in every iteration over {loop.index}",
            )
        if users > 1:
            raise CoverError(
                store, f"`{store.view}` uses {loop.index} twice: it cannot be shown to cover"
            )
        if loop.until is not None:
            raise CoverError(
                store,
                f"`{tensor.name}` is written in the loop over {loop.index}, which `until` may end "
                "before all is written",
            )
    for entry in entries:
        yield _intervals(store, entry, by_index)


def _intervals(store: Store, entry: Entry, loops: dict[str, Loop]) -> _Intervals:
    start, axis = entry.start, entry.axis or Axis(1)
    length: int | None = axis.size if axis.full and isinstance(axis.size, int) else None
    for symbol in start.symbols:
        loop = loops[symbol]
        if loop.blocks and (symbol, 1) in start.terms and _is_block(axis, loop):
            # The blocks of a loop together cover its extent, whatever their size.
            start, length = start - Affine.of(symbol), loop.extent
            break
    choices = []
    for symbol in start.symbols:
        loop = loops[symbol]
        step = (loop.tile or 0) if loop.blocks else 1
        if step == 0:
            length = None
            break
        choices.append(range(0, loop.extent, step))
    if length is None or prod(len(each) for each in choices) > _MOST:
        raise CoverError(store, f"`{store.view}` cannot be shown to cover `{store.view.tensor}`")
    starts = sorted(
        start.evaluate(dict(zip(start.symbols, numbers))) for numbers in product(*choices)
    )
    for before, after in zip(starts, starts[1:]):
        if before + length > after:
            raise CoverError(store, f"`{store.view}` is written more than once")
    return tuple((each, each + length) for each in starts)


def _is_block(axis: Axis, loop: Loop) -> bool:
    """Return whether an axis is a loop's whole block, with the same clipping as the loop."""
    rest = (Affine((), loop.extent) - Affine.of(loop.index),)
    if axis.size == size_symbol(loop.index):
        return axis.rests == rest
    if axis.size != loop.tile:
        return False
    return axis.rests == rest or (axis.full and loop.extent % loop.tile == 0)


def _meet(mine: _Intervals, theirs: _Intervals) -> bool:
    """Return whether two axes overlap."""
    here, there = iter(mine), iter(theirs)
    a, b = next(here, None), next(there, None)
    while a is not None and b is not None:
        if a[1] <= b[0]:
            a = next(here, None)
        elif b[1] <= a[0]:
            b = next(there, None)
        else:
            return True
    return False
