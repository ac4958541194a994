"""Windows of keys: a softmax over blocks leaves out the keys that no row of a tile sees.

A loop over blocks ends early, but begins at the first key. Where a mask hides keys far before a
query, a loop over rows of queries becomes one over points, each of some rows, of which each takes
the keys of its rows alone: the same for all points, so they are the iterations of a launch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hw.numeric.division import ceil_div
from sw.ir import nodes as ir
from sw.ir.affine import Affine, Axis, Bound, size_symbol
from sw.ir.linear_conditions import seen_where
from sw.ir.program import Program
from sw.ir.rewrite import Names, rebuild, unused, walk
from sw.ir.types import TileType
from sw.softmax.running_softmax import RunningSoftmax, SoftmaxFinder
from sw.softmax.score_chain import Missed

__all__ = ["with_key_windows"]

#: Keys before the first that any row sees, from which on they are left out.
_FEWEST = 16
#: Rows of a point: a multiple of these, and about this part of the keys that a row sees.
_ROWS, _PART = 32, 8
#: In a loop, as over heads, few points are one, which takes at most so many times the keys of each.
_FEW = 1.25
#: Products of queries and keys that stay, at most, by those of the whole loop.
_STAY = 0.75


def with_key_windows(program: Program) -> Program:
    """Leave out keys that a mask hides from all rows of a tile.

    Parameters
    ----------
    program : Program
        After `accumulate` and `simplify`, before softmaxes have the machine's form.

    Returns
    -------
    Program
        The same program, if there are few such keys.
    """
    windows = _Windows(program)
    nodes = windows.block(program.nodes)
    return program.after("key_windows", nodes) if windows.changed else program


class _Seen(NamedTuple):
    """Keys that the first row of a tile sees, by their places in the loop; the next row one more.

    Members
    -------
    first : Affine
    last : Affine or None
        None if it sees all behind the first.
    end : int
        The key behind the last one of all.
    """

    first: Affine
    last: Affine | None
    end: int


class _Rows(NamedTuple):
    """Some rows of a loop over queries, and the keys that they take.

    Members
    -------
    points : int
        Number of points, each with so many rows and keys, one point behind the other.
    row, rows, key, keys : int
        First row and key of the first point, and their numbers.
    """

    points: int
    row: int
    rows: int
    key: int
    keys: int


@dataclasses.dataclass(frozen=True)
class _Change:
    """Change of loops to some of their rows and keys, for `rebuild`.

    Parameters
    ----------
    symbols : mapping of str to Affine
        What stands for an index, or for the size of a block.
    names : mapping of str to str
        New names of values and of indices.
    extents : mapping of str to int
        New extents of loops, by their former index.
    clips : mapping of Affine to Affine
        What stands for the rest of a loop behind a block.
    keys : str
        Former index of the loop over keys.
    first : Affine
        The key at which it begins.
    relative : bool
        Whether numbers of queries and keys are counted from that key.
    point : str
        Index of the points: an end that depends on it is behind all keys.
    """

    symbols: Mapping[str, Affine]
    names: Mapping[str, str]
    extents: Mapping[str, int]
    clips: Mapping[Affine, Affine]
    keys: str
    first: Affine
    relative: bool = False
    point: str = ""

    def __call__(self, item: Any) -> Any:
        match item:
            case Affine():
                return item.substitute(self.symbols)
            case Axis():
                forms = (self.clips.get(rest, rest.substitute(self.symbols)) for rest in item.rests)
                size = Axis(item.size).substitute(self.symbols).size
                return Axis(size, tuple(dict.fromkeys(filter(self._stays, forms))))
            case ir.Value():
                return ir.Value(self.names.get(item.name, item.name), item.type)
            case ir.Iota() if self.relative:
                return item.replace(start=item.start - self.first)
            case ir.Loop() if item.index in self.extents:
                return self._loop(item)
        return item

    def _stays(self, form: Affine) -> bool:
        return self.point not in form.symbols

    def _loop(self, loop: ir.Loop) -> ir.Loop:
        until = loop.until
        if until is not None and loop.index == self.keys:
            forms = (form.substitute(self.symbols) - self.first for form in until.forms)
            ends = [*filter(self._stays, forms)]
            until = Bound.least(ends) if ends else None
        index = self.names.get(loop.index, loop.index)
        return loop.replace(index=index, extent=self.extents[loop.index], until=until)


class _Windows:
    def __init__(self, program: Program) -> None:
        self._finder = SoftmaxFinder(program)
        self._names = Names(program)
        self._indices = {each.index for each in walk(program.nodes) if isinstance(each, ir.Loop)}
        #: Loops of several iterations around a node.
        self._around = 0
        self.changed = False

    def block(self, nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        """Nodes of a program or of a loop."""
        found: list[ir.Node] = []
        for node in nodes:
            made = self._of_rows(node) or self._of_tile(node)
            if made:
                self.changed = True
                found += made
            elif isinstance(node, ir.Loop):
                self._around += node.extent > 1
                found.append(node.replace(nodes=self.block(node.body)))
                self._around -= node.extent > 1
            else:
                found.append(node)
        return tuple(found)

    def _softmax(self, node: ir.Node) -> RunningSoftmax | None:
        try:
            return self._finder.find(node)
        except Missed:
            return None

    def _of_tile(self, node: ir.Node) -> tuple[ir.Node, ...]:
        """The loop over keys of a whole tile of rows, from the first one that a row sees."""
        softmax = self._softmax(node)
        seen = self._seen(softmax) if softmax else None
        if softmax is None or seen is None or seen.first.terms:
            return ()
        loop, first = softmax.loop, seen.first.constant
        if not _FEWEST <= first < seen.end:
            return ()
        index, extent = Affine.of(loop.index), loop.extent - first
        change = _Change(
            symbols={loop.index: index + first},
            names={},
            extents={loop.index: extent},
            clips={Affine((), loop.extent) - index: Affine((), extent) - index},
            keys=loop.index,
            first=Affine((), first),
        )
        made: ir.Loop = rebuild(loop, change)
        return (made,)

    def _of_rows(self, node: ir.Node) -> tuple[ir.Node, ...]:
        """A loop over rows as loops over some of them, each with fewer keys."""
        if not isinstance(node, ir.Loop) or not node.blocks or node.carries or node.until:
            return ()
        inside = [each for each in map(self._softmax, node.body) if each]
        seen = self._seen(inside[0]) if len(inside) == 1 else None
        if seen is None or seen.last is None or not _is_masked_alone(node, inside[0]):
            return ()
        others = (each for each in walk(node.body) if each is not inside[0].loop)
        if any(isinstance(each, ir.Loop) and each.until is not None for each in others):
            return ()
        scores = inside[0].chain.product.result.type
        assert isinstance(scores, TileType)
        before, behind = (each - Affine.of(node.index) for each in (seen.first, seen.last))
        if scores.rows.size != size_symbol(node.index) or before.terms or behind.terms:
            return ()
        every = node.extent * min(seen.end, behind.constant + ceil_div(node.extent, 2))
        rows = node.extent, before.constant, behind.constant, seen.end
        choices = (_parts(*rows, few=each) for each in ((_FEW, 1.0) if self._around else (1.0,)))
        parts = next((each for each in choices if each and _taken(each) <= _STAY * every), None)
        if parts is None:
            return ()
        most = max(parts, key=lambda each: each.points * each.rows)
        return tuple(
            self._some_rows(node, inside[0].loop, each, renamed=each is not most) for each in parts
        )

    def _seen(self, softmax: RunningSoftmax) -> _Seen | None:
        """The keys that rows see; None if rules are others, or hide none before them."""
        loop, first, last = softmax.loop, [], []
        for hidden in softmax.chain.hidden:
            rules = seen_where(hidden.condition, self._finder.makers, holds=not hidden.holds)
            for each in rules:
                if (each.rows, each.columns) == (-1, 1):
                    first.append(Affine.of(loop.index) - each.base)
                elif (each.rows, each.columns) == (1, -1):
                    last.append(each.base + Affine.of(loop.index))
                else:
                    return None
            if not rules:
                return None
        if len(first) != 1 or len(last) > 1:
            return None
        ends = [form.constant for form in loop.until.forms if not form.terms] if loop.until else []
        return _Seen(first[0], last[0] if last else None, min([loop.extent, *ends]))

    def _index(self, like: str) -> str:
        """An index that no loop has."""
        found = unused(like, self._indices)
        self._indices.add(found)
        return found

    def _some_rows(self, rows: ir.Loop, keys: ir.Loop, part: _Rows, *, renamed: bool) -> ir.Node:
        """A loop over some rows, as points if there are several."""
        names: dict[str, str] = {}
        if renamed:
            for node in walk((rows,)):
                for each in (*node.results, *getattr(node, "carries", ())):
                    names[each.name] = self._names.fresh(each).name
                if isinstance(node, ir.Loop):
                    names[node.index] = self._index(node.index)
        point = self._index("chunk") if part.points > 1 else ""
        moved = Affine(((point, part.rows),)) if point else Affine()
        first = moved + part.key
        extents = {each.index: each.extent for each in walk((rows,)) if isinstance(each, ir.Loop)}
        own = {each: Affine.of(names.get(each, each)) for each in extents}
        symbols = own | {
            size_symbol(each): Affine.of(size_symbol(form.symbols[0])) for each, form in own.items()
        }
        symbols |= {rows.index: own[rows.index] + moved + part.row}
        symbols |= {keys.index: own[keys.index] + first}
        extents |= {rows.index: part.rows, keys.index: part.keys}
        change = _Change(
            symbols=symbols,
            names=names,
            extents=extents,
            clips={
                Affine((), each.extent) - Affine.of(each.index): Affine((), extents[each.index])
                - own[each.index]
                for each in (rows, keys)
            },
            keys=keys.index,
            first=first,
            relative=True,
            point=point,
        )
        made: ir.Node = rebuild(rows, change)
        if not point:
            return made
        return ir.Loop((), (), rows.span, "each", point, part.points, None, None, (), (made,), ())


def _parts(rows: int, before: int, behind: int, end: int, few: float) -> list[_Rows]:
    """Rows in parts: those that see the first key, points, and those that are left.

    Row r sees the keys from ``r + before`` to ``r + behind``, of all that are before the end. The
    points are one if that takes at most `few` times the keys of each.
    """
    if behind < before:
        return []
    size = ceil_div(ceil_div(behind - before + 1, _PART), _ROWS) * _ROWS
    head = min(rows, max(0, ceil_div(-before, _FEWEST) * _FEWEST))
    points = max(0, (min(rows, end - behind) - head) // size)
    tail, more = head + points * size, behind - before
    if points and points * size + more <= few * (size + more):
        points, size = 1, points * size
    found = [
        _Rows(1, 0, head, 0, min(end, head + behind)),
        _Rows(points, head, size, head + before, size + more),
        _Rows(1, tail, rows - tail, tail + before, min(end, rows + behind) - tail - before),
    ]
    found = [each for each in found if each.points and each.rows]
    return found if all(each.keys > 0 for each in found) else []


def _taken(parts: Iterable[_Rows]) -> int:
    """Products of queries and keys."""
    return sum(each.points * each.rows * each.keys for each in parts)


def _is_masked_alone(rows: ir.Loop, softmax: RunningSoftmax) -> bool:
    """Whether numbers in the loop over rows make the mask, and nothing else."""
    inside = {value.name: node for node in walk(rows.body) for value in node.results}
    wanted = [each.condition.name for each in softmax.chain.hidden]
    made: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in inside and name not in made:
            made.add(name)
            wanted += [each.name for each in inside[name].values]
    hiding = [each.node for each in softmax.chain.hidden]
    for node in walk(rows.body):
        own = any(each.name in made for each in node.results)
        if isinstance(node, ir.Iota) and not own:
            return False
        taken = any(each.name in made for each in node.values)
        if taken and not own and not any(node is each for each in hiding):
            return False
        if isinstance(node, ir.Loop) and any(each.name in made for each in node.nexts):
            return False
    return True
