"""Tensors of `tw.local` that stay on the chip: loops that store and load them become one loop.

A tile is then loaded in the iteration that stored it, and is the stored tile itself.
"""

from __future__ import annotations

import dataclasses

from sw.ir import nodes as ir
from sw.ir.affine import Affine, size_symbol
from sw.ir.program import Program
from sw.ir.rewrite import rename, used, walk
from sw.ir.types import Role, Space, Tensor, View
from sw.language.program_error import ProgramError
from sw.parts.slices import stores

__all__ = ["fused"]


def fused(program: Program) -> tuple[Program, frozenset[str]]:
    """A program without local tensors on the chip, and the names of the tiles that they held.

    Parameters
    ----------
    program : Program
        After `simplify`.

    Raises
    ------
    ProgramError
        At a load of anything but a tile that an iteration of a loop like its own stored.
    """
    held: set[str] = set()
    for tensor in program.tensors:
        if tensor.type.role is Role.LOCAL and tensor.type.space is Space.CHIP:
            fusion = _Fusion(program, tensor)
            nodes = fusion.block(program.nodes)
            tensors = tuple(each for each in program.tensors if each != tensor)
            program = dataclasses.replace(program, tensors=tensors, nodes=nodes)
            held |= fusion.held
    return program, frozenset(held)


class _Fusion:
    """Fusion of the loops that access one tensor."""

    def __init__(self, program: Program, tensor: Tensor) -> None:
        self._program = program
        self._tensor = tensor
        self._stored = next(e for e in stores(program.nodes) if e.view.tensor == tensor.name)
        #: Names of tiles that the tensor held.
        self.held: set[str] = set()

    def block(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """Nodes that store tiles of the tensor and load them, as nodes that pass the tiles."""
        left = list(nodes)
        first = next(n for n, node in enumerate(left) if self._accesses(node))
        found, rest = left[:first], left[first:]
        writer = rest.pop(0)
        if isinstance(writer, ir.Store):
            return (*found, *self._passed(writer, tuple(rest)))
        assert isinstance(writer, ir.Loop)
        reader = next((node for node in rest if self._accesses(node)), None)
        while reader is not None:
            if not isinstance(reader, ir.Loop) or not _alike(writer, reader):
                raise self._refusal(reader)
            between = rest[: rest.index(reader)]
            rest = rest[len(between) + 1 :]
            before, behind = self._around(writer, reader, between)
            found += before
            writer = _joined(writer, reader)
            rest = [*behind, *rest]
            reader = next((node for node in rest if self._accesses(node)), None)
        return (*found, writer.replace(nodes=self.block(writer.body)), *rest)

    def _around(
        self, writer: ir.Loop, reader: ir.Loop, between: list[ir.Node]
    ) -> tuple[list[ir.Node], list[ir.Node]]:
        """Nodes between two loops as nodes before their fusion and behind it."""
        made = {each.name for each in writer.results}
        late: list[ir.Node] = []
        for node in between:
            follows = any(_conflict(each, node) for each in (writer, *late))
            if follows or any(each.name in made for each in used(node)):
                late.append(node)
                made |= {each.name for each in node.results}
        after = any(each.name in made for each in used(reader))
        if after or any(_conflict(node, reader) for node in late):
            raise self._refusal(reader)
        return [node for node in between if node not in late], late

    def _passed(self, store: ir.Store, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """Nodes that take the stored tile instead of loading it."""
        stored = store.values[0]
        self.held.add(stored.name)
        found: list[ir.Node] = []
        for node in nodes:
            if isinstance(node, ir.Load) and node.view == store.view:
                format_ = self._tensor.type.format
                node = ir.Cast((stored,), node.results, node.span, format_)
                self.held.add(node.result.name)
            elif self._accesses(node):
                raise self._refusal(node)
            found.append(node)
        return tuple(found)

    def _accesses(self, node: ir.Node) -> list[ir.Node]:
        return [each for each in walk((node,)) if _tensor_of(each) == self._tensor.name]

    def _refusal(self, node: ir.Node) -> ProgramError:
        load = self._accesses(node)[0]
        name, span = self._tensor.name, self._stored.span
        line = f" (line {span.line})" if span is not None else ""
        return ProgramError(
            "unserved",
            f"`{name}` stays on the chip, so its tiles must be loaded as they are stored{line}, in "
            "a loop over the same blocks, with nothing between that needs both; or write "
            "`tw.local(..., spill=True)` to pass it through memory",
            load.span,
            value=name,
        )


def _tensor_of(node: ir.Node) -> str | None:
    view: View | None = getattr(node, "view", None)
    return view.tensor if view is not None else None


def _alike(one: ir.Loop, other: ir.Loop) -> bool:
    """Whether two loops have the same iterations."""
    kinds = [(each.mode, each.extent, each.tile, each.until) for each in (one, other)]
    return kinds[0] == kinds[1] and one.until is None and one.mode != "repeat"


def _conflict(one: ir.Node, other: ir.Node) -> bool:
    """Whether two nodes access a tensor that one of them changes."""
    every, changed = [], []
    for node in (one, other):
        accesses = [(each, _tensor_of(each)) for each in walk((node,))]
        every.append({name for _, name in accesses if name})
        writes = (name for each, name in accesses if isinstance(each, ir.Store | ir.Scatter))
        changed.append({name for name in writes if name})
    return bool(changed[0] & every[1] or changed[1] & every[0])


def _joined(writer: ir.Loop, reader: ir.Loop) -> ir.Loop:
    """One loop with the bodies of two."""
    symbols = {
        reader.index: Affine.of(writer.index),
        size_symbol(reader.index): Affine.of(size_symbol(writer.index)),
    }
    renamed = rename(Program("", (), (reader,)), {}, symbols).nodes[0]
    assert isinstance(renamed, ir.Loop)
    return writer.replace(
        operands=(*writer.operands, *renamed.operands),
        results=(*writer.results, *reader.results),
        carries=(*writer.carries, *renamed.carries),
        nodes=(*writer.body, *renamed.body),
        nexts=(*writer.nexts, *renamed.nexts),
    )
