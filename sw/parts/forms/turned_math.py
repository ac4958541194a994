"""Element math of tiles as they are loaded, in place of that of their transposes.

Memories transpose what they hold; lanes do not. No bit changes.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence

from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import Names, walk
from sw.parts.forms.column_groups import is_vector, tile, turned
from sw.passes.simplify import live

__all__ = ["with_turned_math"]


def with_turned_math(program: Program) -> Program:
    """The program without transposes of constants, and of element math of transposes alone.

    Constants and vectors may stand beside these transposes of loaded tiles; vectors are transposed
    then. It is the program itself if it has none.
    """
    turner = _Turner(program)
    nodes = tuple(turner.block(program.nodes))
    return program if nodes == program.nodes else dataclasses.replace(program, nodes=live(nodes))


class _Made(enum.Enum):
    """Kinds of tiles that element math takes."""

    CONSTANT = enum.auto()
    #: Of a loaded tile.
    TRANSPOSE = enum.auto()
    VECTOR = enum.auto()
    #: Anything else.
    MATRIX = enum.auto()


class _Turner:
    """The transposes of a program."""

    def __init__(self, program: Program) -> None:
        self._makers = {each.name: node for node in walk(program.nodes) for each in node.results}
        self._names = Names(program)
        self._made: dict[str, frozenset[_Made]] = {}
        #: What stands for some tiles, transposed, in element math.
        self._known: dict[str, ir.Value] = {}

    def block(self, nodes: Sequence[ir.Node]) -> Iterator[ir.Node]:
        """The nodes of a block, with others in place of such transposes."""
        for node in nodes:
            if isinstance(node, ir.Loop):
                node = node.replace(nodes=tuple(self.block(node.body)))
            elif isinstance(node, ir.Transpose):
                (source,) = node.values
                if self._is_constant(source) or self._is_made(source):
                    made: list[ir.Node] = []
                    self._known.clear()
                    self._turned(source, made)
                    yield from made[:-1]
                    node = made[-1].replace(results=node.results)
            yield node

    def _is_constant(self, value: ir.Value) -> bool:
        """Whether a tile is made of numbers alone."""
        return self._made_of(value) <= {_Made.CONSTANT}

    def _is_made(self, value: ir.Value) -> bool:
        """Whether a tile is element math of transposes, constants and vectors, and no others."""
        node = self._makers.get(value.name)
        made = self._made_of(value)
        is_math = isinstance(node, ir.Map | ir.Cast | ir.Buffer)
        return is_math and _Made.TRANSPOSE in made and _Made.MATRIX not in made

    def _made_of(self, value: ir.Value) -> frozenset[_Made]:
        """Kinds of the tiles that a tile is element math of; its own kind if it is none."""
        if value.name not in self._made:
            self._made[value.name] = self._sources(value)
        return self._made[value.name]

    def _sources(self, value: ir.Value) -> frozenset[_Made]:
        node = self._makers.get(value.name)
        match node:
            case ir.Full() | ir.Iota():
                return frozenset({_Made.CONSTANT})
            case ir.Transpose() if isinstance(self._makers.get(node.values[0].name), ir.Load):
                return frozenset({_Made.TRANSPOSE})
            case ir.Map() | ir.Cast() | ir.Buffer():
                return frozenset().union(*map(self._made_of, node.values))
        return frozenset({_Made.VECTOR if is_vector(value) else _Made.MATRIX})

    def _turned(self, value: ir.Value, made: list[ir.Node]) -> ir.Value:
        """The transpose of a tile, by nodes that are added to a list."""
        if value.name not in self._known:
            self._known[value.name] = self._computed(value, made)
        return self._known[value.name]

    def _computed(self, value: ir.Value, made: list[ir.Node]) -> ir.Value:
        node = self._makers.get(value.name)
        span = None if node is None else node.span
        result = self._names.fresh(value, turned(tile(value)))
        match node:
            case ir.Transpose():
                return node.values[0]
            case ir.Full():
                node = node.replace(rows=node.cols, cols=node.rows)
            case ir.Iota():
                node = node.replace(rows=node.cols, cols=node.rows, axis=1 - node.axis)
            case ir.Map() | ir.Cast() | ir.Buffer():
                operands = (
                    self._turned(each, made) if isinstance(each, ir.Value) else each
                    for each in node.operands
                )
                node = node.replace(operands=tuple(operands))
            case _:
                node = ir.Transpose((value,), (), span)
        made.append(node.replace(results=(result,)))
        return result
