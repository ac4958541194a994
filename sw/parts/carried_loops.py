"""Loops that carry tiles which are no sums of products, as programs without them.

An image carries sums in accumulators, and the softmax of `online` in the units made for it. Of
other carries, such as a running maximum, h = h * w + x, or the state of a recurrent network:

1. A loop over blocks takes the whole axis as one block, where no size is asked for. The tile that
   it would carry is then read once and made once.
2. A short loop over points is written out, if it has few operations and no product.
3. Any other loop over points becomes one of `tw.repeat`, whose iterations are launches.

Loops over blocks around such a loop over points are one block as well, and loops over points around
it are of `tw.repeat`, too. `sw.parts.nested_states` turns those inside out where it can.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from hw.numeric.division import ceil_div
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.ir.program import Program
from sw.ir.rewrite import Names, map_operands, rebuild, replaced, walk
from sw.ir.sizes import without_idle_rests
from sw.ir.verify import verify
from sw.language.program_error import ProgramError

__all__ = ["without_carried_loops"]

#: Most copies of the body of a loop that is written out.
_MOST_COPIES = 8
#: Most element operations of all copies of a body that might be launches: beyond, they are no
#: longer one or two images, and take longer than launches of one.
_MOST_OPERATIONS = 24


def without_carried_loops(program: Program, tiles: Mapping[str, int]) -> Program:
    """Write a program without loops that carry what is no sum of products.

    Parameters
    ----------
    program : Program
        After `simplify`.
    tiles : mapping of str to int
        Block sizes of a schedule, by the loop's index.

    Raises
    ------
    ProgramError
        If blocks of the asked size are too many.
    """
    if not any(map(_is_carried, walk(program.nodes))):
        return program
    rewriter = _Rewriter(program, tiles)
    nodes = rewriter.block(program.nodes, inside=False)
    return verify(program.after("carried_loops", nodes))


def _is_carried(node: ir.Node) -> bool:
    """Whether a node is a loop that carries a tile which is no sum, nor part of a softmax."""
    if not isinstance(node, ir.Loop) or node.mode == "repeat" or not node.carries:
        return False
    if any(isinstance(each, ir.Powers) for each in walk(node.body)):
        return False
    return not _is_sum(node)


def _is_sum(loop: ir.Loop) -> bool:
    """Whether every carry is the addend of a product, or the start of such a loop."""
    makers = {each.name: node for node in loop.body for each in node.results}
    for carry, last in zip(loop.carries, loop.nexts):
        maker = makers.get(last.name)
        while isinstance(maker, ir.Buffer):
            maker = makers.get(maker.values[0].name)
        if isinstance(maker, ir.Matmul):
            sums = maker.operands[2:] == (carry,)
        else:
            sums = isinstance(maker, ir.Loop) and carry in maker.operands and _is_sum(maker)
        if not sums:
            return False
    return True


def _is_brief(loop: ir.Loop) -> bool:
    """Whether all copies of the body have no product and few element operations."""
    inside = list(walk(loop.body))
    operations = sum(isinstance(each, ir.Map | ir.Cast | ir.Reduce) for each in inside)
    few = operations * loop.extent <= _MOST_OPERATIONS
    return few and not any(isinstance(each, ir.Matmul) for each in inside)


class _Rewriter:
    """Nodes in order, with the values that inlined loops leave behind."""

    def __init__(self, program: Program, tiles: Mapping[str, int]) -> None:
        self._tiles = tiles
        self._names = Names(program)
        self._indices = {each.index for each in walk(program.nodes) if isinstance(each, ir.Loop)}
        self._values: dict[str, ir.Value] = {}

    def block(self, nodes: tuple[ir.Node, ...], *, inside: bool) -> tuple[ir.Node, ...]:
        """Nodes without carried loops; `inside` of another loop that stays."""
        found: list[ir.Node] = []
        for node in nodes:
            node = map_operands(node, functools.partial(replaced, self._values))
            if isinstance(node, ir.Loop) and any(map(_is_carried, walk((node,)))):
                found += self._loop(node, inside)
            else:
                found.append(node)
        return tuple(found)

    def _loop(self, loop: ir.Loop, inside: bool) -> Sequence[ir.Node]:
        if loop.blocks:
            many = _is_carried(loop) and self._blocks(loop)[1] > _MOST_COPIES
            return self._points(loop, inside) if many else self._copies(loop, inside)
        if not inside and self._has_launches(loop):
            body = self.block(loop.body, inside=False)
            nexts = tuple(map(self._value, loop.nexts))
            return (loop.replace(mode="repeat", nodes=body, nexts=nexts),)
        if not _is_carried(loop):
            return (self._kept(loop),)
        if loop.extent <= _MOST_COPIES and (inside or _is_brief(loop)):
            return self._copies(loop, inside)
        return (self._kept(loop).replace(mode="repeat"),)

    def _has_launches(self, loop: ir.Loop) -> bool:
        """Whether a loop has one inside that carries tiles and is not written out."""
        loops = (each for each in walk(loop.body) if isinstance(each, ir.Loop))
        return any(_is_carried(each) and self._blocks(each)[1] > _MOST_COPIES for each in loops)

    def _blocks(self, loop: ir.Loop) -> tuple[int, int, int]:
        """Size of a block, how many there are, and the end; a point is a block of one."""
        extent = loop.extent
        if loop.until is not None:
            extent = min(extent, *(each.constant for each in _numbers(loop, loop.until)))
        size = 1
        if loop.blocks and not _is_carried(loop):
            size = extent
        elif loop.blocks:
            size = min(self._tiles.get(loop.index, loop.tile or extent), extent)
        return size, ceil_div(extent, size), extent

    def _points(self, loop: ir.Loop, inside: bool) -> Sequence[ir.Node]:
        """A loop over blocks of a given size as one over points, and a copy for the rest."""
        size, _, extent = self._blocks(loop)
        count, rest = divmod(extent, size)
        index = {loop.index: Affine.of(loop.index) * size}
        sized = {size_symbol(loop.index): Affine((), size)}
        ranges = {loop.index: (0, count - 1)}
        body, values = self._copy(loop.body, index | sized, {}, again=False, ranges=ranges)
        points = loop.replace(
            mode="each",
            extent=count,
            tile=None,
            until=None,
            nodes=body,
            nexts=tuple(values.get(each.name, each) for each in loop.nexts),
            results=tuple(map(self._names.fresh, loop.results)),
        )
        assert isinstance(points, ir.Loop)
        found = [*self._loop(points, inside)]
        last = tuple(map(self._value, points.results))
        if rest:
            at = count * size, rest
            nodes, last = self._iteration(loop, at, last, inside=inside, again=True)
            found += nodes
        self._values.update(zip((each.name for each in loop.results), last))
        return found

    def _kept(self, loop: ir.Loop) -> ir.Loop:
        """A loop that stays, around a body without carried loops."""
        body = self.block(loop.body, inside=True)
        kept = loop.replace(nodes=body, nexts=tuple(map(self._value, loop.nexts)))
        assert isinstance(kept, ir.Loop)
        return kept

    def _value(self, value: ir.Value) -> ir.Value:
        final = replaced(self._values, value)
        assert isinstance(final, ir.Value)
        return final

    def _copies(self, loop: ir.Loop, inside: bool) -> Sequence[ir.Node]:
        """The body once for each iteration, or once for all where no block size is asked for."""
        size, count, extent = self._blocks(loop)
        found: list[ir.Node] = []
        carried = loop.values
        for number in range(count):
            at = number * size, min(size, extent - number * size)
            nodes, carried = self._iteration(loop, at, carried, inside=inside, again=number > 0)
            found += nodes
        self._values.update(zip((each.name for each in loop.results), carried))
        return found

    def _iteration(
        self,
        loop: ir.Loop,
        at: tuple[int, int],
        carried: tuple[ir.Value, ...],
        *,
        inside: bool,
        again: bool,
    ) -> tuple[tuple[ir.Node, ...], tuple[ir.Value, ...]]:
        """Nodes of the iteration at a first element and of a size, and what it carries on."""
        symbols = {loop.index: Affine((), at[0])}
        if loop.blocks:
            symbols[size_symbol(loop.index)] = Affine((), at[1])
        values = dict(zip((each.name for each in loop.carries), carried))
        body, values = self._copy(loop.body, symbols, values, again=again)
        lasts = tuple(values.get(each.name, each) for each in loop.nexts)
        nodes = self.block(body, inside=inside)
        return nodes, tuple(map(self._value, lasts))

    def _copy(
        self,
        nodes: tuple[ir.Node, ...],
        symbols: Mapping[str, Affine],
        values: dict[str, ir.Value],
        *,
        again: bool,
        ranges: Mapping[str, tuple[int, int]] | None = None,
    ) -> tuple[tuple[ir.Node, ...], dict[str, ir.Value]]:
        """Nodes with symbols as numbers and values of their own, by the names that they had."""
        symbols = dict(symbols)
        inner = [each for each in walk(nodes) if isinstance(each, ir.Loop)] if again else []
        for each in inner:
            index = self._index(each.index)
            symbols |= {
                each.index: Affine.of(index),
                size_symbol(each.index): Affine.of(size_symbol(index)),
            }

        def numbered(item: Any) -> Any:
            if isinstance(item, Affine | Bound):
                return item.substitute(symbols)
            if isinstance(item, Axis):
                return without_idle_rests(item.substitute(symbols), ranges or {})
            if isinstance(item, ir.Loop) and item.index in symbols:
                return dataclasses.replace(item, index=symbols[item.index].symbols[0])
            return item

        values = dict(values)
        made = {
            value.name: value
            for node in walk(nodes)
            for value in (*node.results, *(node.carries if isinstance(node, ir.Loop) else ()))
        }
        for name, value in made.items():
            new = rebuild(value, numbered)
            values[name] = self._names.fresh(new) if again else new

        def renamed(item: Any) -> Any:
            return values.get(item.name, item) if isinstance(item, ir.Value) else numbered(item)

        return rebuild(nodes, renamed), values

    def _index(self, name: str) -> str:
        number = 2
        while f"{name}.{number}" in self._indices:
            number += 1
        self._indices.add(f"{name}.{number}")
        return f"{name}.{number}"


def _numbers(loop: ir.Loop, until: Bound) -> tuple[Affine, ...]:
    """The ends of a loop, which are numbers."""
    if any(each.terms for each in until.forms):
        raise ProgramError(
            "unserved",
            f"Loop over `{loop.index}` carries a tile, and must not end by another loop's index",
            loop.span,
            value=loop.index,
        )
    return until.forms
