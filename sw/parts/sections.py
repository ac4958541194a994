"""Sections of a program: its loops of `tw.repeat`, and what stands before, between and behind them.

The body of such a loop is a program of its own, which is divided once. Its iterations are launches:
tensors that the index cuts begin elsewhere in each of them, and carried tiles pass through memory,
in two slots by turns. So no iteration overwrites what it reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

from sw.array_spec import ArraySpec, arrays_of
from sw.ir import nodes as ir
from sw.ir.format_rules import pred
from sw.ir.program import Program
from sw.ir.rewrite import unused, used, walk
from sw.ir.types import Dim, Role, Space, Tensor, TensorType, TileType, View
from sw.language.program_error import ProgramError
from sw.parts.index_cuts import without_index
from sw.parts.nested_states import NestedStates, nested_states
from sw.parts.part import Argument
from sw.parts.slices import with_nodes

__all__ = ["Section", "is_repeated", "sections"]


@dataclasses.dataclass(frozen=True)
class Section:
    """A program, and where its tensors begin in memory in each of its launches.

    Parameters
    ----------
    program : Program
        Without loops of `tw.repeat`.
    places : tuple of mapping of str to Argument
        Where each of its tensors begins in memory, for each iteration.
    """

    program: Program
    places: tuple[Mapping[str, Argument], ...]


def is_repeated(node: ir.Node) -> bool:
    """Whether a node is a loop of `tw.repeat`."""
    return isinstance(node, ir.Loop) and node.mode == "repeat"


def sections(program: Program) -> tuple[tuple[Section, ...], tuple[ArraySpec, ...]]:
    """Divide a program at its loops of `tw.repeat`, which stand outside all others.

    Parameters
    ----------
    program : Program
        After `simplify`.

    Returns
    -------
    tuple of Section
        In order.
    tuple of ArraySpec
        Arrays between them: values that later sections read, and carried tiles.

    Raises
    ------
    ProgramError
        If an index of `tw.repeat` does anything but cut the first axis of a tensor, or a tensor
        that the loop updates is cut in several ways.
    """
    return _Sections(program).run()


@dataclasses.dataclass(frozen=True)
class _Carried:
    """A carried tile in memory.

    Parameters
    ----------
    taken, given : Tensor
        What an iteration loads and stores.
    start : Argument
        What the first iteration takes.
    end : Argument or None
        Where the last iteration stores; None where its turn is.
    """

    taken: Tensor
    given: Tensor
    start: Argument
    end: Argument | None


class _Sections:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._specs = {each.name: each for each in arrays_of(program)}
        self._names = set(self._specs)
        self._between: list[ArraySpec] = []
        #: Where each value of a section that has ended is in memory.
        self._places: dict[str, Argument] = {}
        #: Nodes whose results are made again in each section that reads them.
        self._again: dict[str, ir.Node] = {}
        #: Tensors that hold the last value of a carry instead of an array between sections.
        self._direct = _direct_stores(program)

    def run(self) -> tuple[tuple[Section, ...], tuple[ArraySpec, ...]]:
        found: list[Section] = []
        rest = self._program.nodes
        while rest:
            count = next((n for n, node in enumerate(rest) if is_repeated(node)), len(rest))
            straight, later = rest[:count], rest[count:]
            found += self._straight(straight, later)
            if later:
                assert isinstance(later[0], ir.Loop)
                nest = nested_states(later[0])
                found += self._nested(nest) if nest else [self._repeated(later[0])]
            rest = later[1:]
        used = {place.array for each in found for at in each.places for place in at.values()}
        return tuple(found), tuple(each for each in self._between if each.name in used)

    def _straight(
        self, nodes: tuple[ir.Node, ...], later: tuple[ir.Node, ...]
    ) -> Iterator[Section]:
        """Section of the nodes between two loops, with stores of the values that `later` reads."""
        nodes = tuple(each for each in nodes if each not in self._direct.values())
        read_only = {each.name for each in self._program.tensors if each.type.role is Role.IN}
        for node in nodes:
            if _is_free(node, read_only):
                self._again[node.result.name] = node
        starts = {each.name for node in later[:1] for each in node.values if not self._whole(each)}
        read = {each.name for node in later for each in used(node)} - self._again.keys() | starts
        free, tensors, places = self._loads(nodes)
        passed = []
        again = (self._again[name] for name in sorted(starts & self._again.keys()))
        every = tuple(dict.fromkeys((*nodes, *again)))
        for node in every:
            for value in node.results:
                if value.name in read - self._places.keys():
                    tensor = self._tensor(value, Role.OUT, node)
                    tensors.append(tensor)
                    places[tensor.name] = Argument(self._array(tensor).name)
                    self._places[value.name] = places[tensor.name]
                    passed.append(_store(value, tensor, node))
        whole = self._with(tensors, (*free, *every, *passed))
        if whole.nodes:
            yield Section(whole, (self._of_arrays(whole, places),))

    def _repeated(self, loop: ir.Loop) -> Section:
        """The body of a loop, whose carries are loaded at its beginning and stored at its end."""
        loads, stores, carried = [], [], []
        for start, carry, last, result in zip(
            loop.values, loop.carries, loop.nexts, loop.results, strict=True
        ):
            taken, given = (self._tensor(carry, role, loop) for role in (Role.IN, Role.OUT))
            loads.append(_load(carry, taken, loop))
            stores.append(_store(last, given, loop))
            place = self._whole(start) or self._places[start.name]
            direct = self._direct.get(result.name)
            end = Argument(direct.view.tensor) if direct is not None else None
            carried.append(_Carried(taken, given, place, end))
        section = self._iterations(loop, carried, loads, stores)
        for result, each in zip(loop.results, carried, strict=True):
            self._places[result.name] = section.places[-1][each.given.name]
        return section

    def _iterations(
        self,
        loop: ir.Loop,
        carried: Sequence[_Carried],
        loads: Sequence[ir.Load] = (),
        stores: Sequence[ir.Store] = (),
    ) -> Section:
        """The body of a loop, with tensors that its iterations take and give in turn."""
        body, sliced, cut = without_index(loop, self._program, self._specs, self._names)
        free, tensors, places = self._loads(body, loop)
        every = [dict(places) for _ in range(loop.extent)]
        tensors += sliced
        for name, first in cut.items():
            for number, each in enumerate(every):
                each[name] = Argument(first.array, first.offset + first.stride * number)
        for state in carried:
            array = self._array(state.given, slots=2)
            tensors += [state.taken, state.given]
            place = state.start
            for number, each in enumerate(every):
                each[state.taken.name] = place
                place = Argument(array.name, array.bytes // 2 * (number % 2))
                if state.end is not None and number == loop.extent - 1:
                    place = state.end
                each[state.given.name] = place
        whole = self._with(tensors, (*free, *loads, *body, *stores))
        return Section(whole, tuple(self._of_arrays(whole, each) for each in every))

    def _nested(self, nest: NestedStates) -> Iterator[Section]:
        """Starts of all points, iterations of all points, and what stands behind them."""
        loop, count = nest.loop, nest.count
        first = [self._tensor(each, Role.OUT, loop, count) for each in loop.carries]
        taken = [self._tensor(each, Role.IN, loop, count) for each in loop.carries]
        given = [self._tensor(each, Role.OUT, loop, count) for each in loop.carries]
        begun = [Argument(self._array(each).name) for each in first]
        starts = nest.starts(first, self._again)
        yield self._once(starts, dict(zip(first, begun)))
        carried = [_Carried(*each, None) for each in zip(taken, given, begun, strict=True)]
        section = self._iterations(nest.iteration(taken, given), carried)
        yield section
        if nest.stores_behind:
            last = [self._tensor(each, Role.IN, loop, count) for each in loop.results]
            ends = [section.places[-1][each.name] for each in given]
            yield self._once((nest.ends(last),), dict(zip(last, ends)))

    def _once(self, nodes: tuple[ir.Node, ...], places: Mapping[Tensor, Argument]) -> Section:
        """Nodes as a section, with tensors that begin at given places."""
        free, tensors, at = self._loads(nodes)
        whole = self._with([*tensors, *places], (*free, *nodes))
        at |= {tensor.name: place for tensor, place in places.items()}
        return Section(whole, (self._of_arrays(whole, at),))

    def _whole(self, value: ir.Value) -> Argument | None:
        """The array that a value is, if it is all of an input in the input's format."""
        node = self._again.get(value.name)
        if not isinstance(node, ir.Load) or not _is_whole(node.view, self._program):
            return None
        tensor = self._program.tensor(node.view.tensor)
        same = isinstance(value.type, TileType) and tensor.type.format == value.type.format
        return Argument(tensor.name) if same else None

    def _loads(
        self, nodes: tuple[ir.Node, ...], loop: ir.Loop | None = None
    ) -> tuple[tuple[ir.Node, ...], list[Tensor], dict[str, Argument]]:
        """Nodes that make the values of earlier sections, and the tensors that these load."""
        inside = {each.name for node in walk(nodes) for each in _made(node)}
        last = loop.nexts if loop else ()
        inside |= {each.name for each in (loop.carries if loop else ())}
        free = {each.name: each for node in nodes for each in used(node)}
        free |= {each.name: each for each in last}
        found: list[ir.Node] = []
        tensors: list[Tensor] = []
        places: dict[str, Argument] = {}
        for value in free.values():
            if value.name in inside:
                continue
            if value.name in self._again:
                found.append(self._again[value.name])
                continue
            tensor = self._tensor(value, Role.IN, loop or nodes[0])
            tensors.append(tensor)
            places[tensor.name] = self._places[value.name]
            found.append(_load(value, tensor, loop or nodes[0]))
        return tuple(found), tensors, places

    def _tensor(self, value: ir.Value, role: Role, near: ir.Node, count: int = 1) -> Tensor:
        """A tensor of a section for a value, or for values of several points below one another."""
        kind = value.type
        assert isinstance(kind, TileType)
        if kind.format == pred:
            raise ProgramError(
                "unserved",
                f"A condition such as `{value.variable or 'this'}` must be computed in the loop of "
                "`tw.repeat` that reads it: it cannot pass through memory",
                near.span,
                value=value.variable or "",
            )
        sizes = [int(kind.axis(number).size) for number in range(2)]
        dims = Dim("rows", sizes[0] * count), Dim("cols", sizes[1])
        name = unused(value.variable or f"value.{value.name}", self._names)
        self._names.add(name)
        return Tensor(name, TensorType(dims, kind.format, Space.MEMORY, role))

    def _array(self, tensor: Tensor, slots: int = 1) -> ArraySpec:
        """An array between sections: as many tiles as it has slots."""
        shape = tensor.type.shape if slots == 1 else (slots, *tensor.type.shape)
        array = ArraySpec(tensor.name, shape, tensor.type.format)
        self._between.append(array)
        return array

    def _with(self, tensors: Collection[Tensor], nodes: tuple[ir.Node, ...]) -> Program:
        whole = (*self._program.tensors, *tensors)
        return with_nodes(dataclasses.replace(self._program, tensors=whole), nodes)

    def _of_arrays(self, program: Program, places: Mapping[str, Argument]) -> dict[str, Argument]:
        """Where the tensors of a section begin; those of the whole program are its arrays."""
        names = (each.name for each in program.tensors)
        return {name: places.get(name, Argument(name)) for name in names}


def _made(node: ir.Node) -> Iterator[ir.Value]:
    yield from node.results
    yield from node.carries if isinstance(node, ir.Loop) else ()


def _is_free(node: ir.Node, read_only: Collection[str]) -> bool:
    """Whether a node reads nothing but tensors that never change."""
    if isinstance(node, ir.Load):
        return not node.operands and node.view.tensor in read_only
    return isinstance(node, ir.Full | ir.Iota) and not node.operands


def _is_whole(view: View, program: Program) -> bool:
    return view == program.tensor(view.tensor).whole


def _load(value: ir.Value, tensor: Tensor, near: ir.Node) -> ir.Load:
    return ir.Load((), (value,), near.span, tensor.whole)


def _store(value: ir.Value, tensor: Tensor, near: ir.Node) -> ir.Store:
    return ir.Store((value,), (), near.span, tensor.whole)


def _direct_stores(program: Program) -> dict[str, ir.Store]:
    """Stores of last values that are all of an output and are not read otherwise, by the value."""
    results = {each.name for node in program.nodes if is_repeated(node) for each in node.results}
    reads = [each.name for node in program.nodes for each in used(node)]
    found = {}
    for node in program.nodes:
        if isinstance(node, ir.Store) and node.values[0].name in results:
            value = node.values[0]
            kind = program.tensor(node.view.tensor).type
            same = isinstance(value.type, TileType) and value.type.format == kind.format
            alone = reads.count(value.name) == 1 and kind.role is Role.OUT
            if same and alone and _is_whole(node.view, program):
                found[value.name] = node
    return found
