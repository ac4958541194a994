"""Lines of the kernel behind each stage of one of its parts."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sw.ir import nodes as ir
from sw.ir.rewrite import used, walk
from sw.prove.unrolled_loops import box_owners
from sw.stages.stage_graph import Hold, Lanes, Load, Product, Store

if TYPE_CHECKING:
    from sw.compiled_part import CompiledPart

__all__ = ["Line", "Lines", "PartLines"]

#: File and number of a line.
Line = tuple[str, int]
#: Lines without an order.
Lines = frozenset[Line]
_Names = frozenset[str]
_NONE: Lines = frozenset()
#: Nodes that compute nothing.
_IDLE = (ir.Loop, ir.Load, ir.Store, ir.Buffer, ir.Full, ir.Iota)


def _lines(nodes: Iterable[ir.Node]) -> Lines:
    """Every line of some nodes' statements."""
    spans = [node.span for node in nodes if node.span is not None]
    return frozenset(
        (span.file, line) for span in spans for line in range(span.line, span.end_line + 1)
    )


class PartLines:
    """Lines behind the stages of a part.

    A load, and a buffer that loads fill, belong to the lines that load the tensor; a store, and a
    buffer that a store empties, to those that store it. An operation belongs to the first PCUs that
    all its tensors reach; PCUs behind them in a chain, which no operation is left for, share its
    lines.

    Parameters
    ----------
    part : CompiledPart
    """

    def __init__(self, part: CompiledPart) -> None:
        nodes = list(walk(part.part.program.nodes))
        self._part = part
        self._names = [array.name for array in part.part.arrays]
        self._stages = part.graph.stages
        self._loads = _by_tensor(nodes, stores=False)
        self._stores = _by_tensor(nodes, stores=True)
        self._before: dict[str, list[str]] = collections.defaultdict(list)
        for stream in part.graph.streams:
            for sink in stream.sinks:
                self._before[sink.stage] += [source.stage for source, _ in stream.sources]
        origins = _origins(nodes)
        self._work = [
            (origins[node.results[0].name], _lines([node]))
            for node in nodes
            if node.results and not isinstance(node, _IDLE)
        ]
        self._computed = {
            name: self._computing(name) for name in self._stages if self._is_pcu(name)
        }

    def moving(self, tensor: str, *, stored: bool) -> Lines:
        """Lines that load, or that store, a tensor of the part."""
        return (self._stores if stored else self._loads).get(tensor, _NONE)

    def of(self, stage: str) -> Lines:
        """Lines behind a stage."""
        match self._stages[stage]:
            case Load():
                return _joined(self._loads, self._tensors(stage))
            case Store():
                return _joined(self._stores, self._tensors(stage))
            case Hold():
                return self._held(stage)
            case _:
                return self._shared(stage)

    def _is_pcu(self, stage: str) -> bool:
        return isinstance(self._stages[stage], Product | Lanes)

    def _tensors(self, stage: str) -> _Names:
        """Tensors of a load or a store."""
        found = self._stages[stage]
        assert isinstance(found, Load | Store)
        more = [each[1] for each in found.following] if isinstance(found, Load) else []
        return frozenset(self._names[number] for number in (found.argument, *more))

    def _delivered(self, load: str, stage: str) -> _Names:
        """Tensors of a load stream whose boxes one of its buffers takes."""
        found = self._stages[load]
        assert isinstance(found, Load)
        if not found.following:
            return self._tensors(load)
        issuer = self._part.chip.agcus[found.agcu].loads[found.stream]
        assert issuer is not None
        numbers = (found.argument, *(argument for _, argument, _ in found.following))
        sinks = [sink.stage for sink in self._part.graph.sinks(load)]
        # The next box is for the next takers.
        return frozenset(
            self._names[numbers[owner]]
            for box, owner in enumerate(box_owners(issuer).tolist())
            for taker in range(found.takers)
            if sinks[(box * found.takers + taker) % len(sinks)] == stage
        )

    def _before_all(self, stage: str) -> set[str]:
        """A stage and those whose packets reach it."""
        found: set[str] = set()
        waiting = [stage]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self._before[each]
        return found

    def _feeds(self, stage: str) -> _Names:
        """Tensors whose elements reach a stage."""
        streams = [
            (before, each) for each in self._before_all(stage) for before in self._before[each]
        ]
        loads = [ends for ends in streams if isinstance(self._stages[ends[0]], Load)]
        return frozenset[str]().union(*(self._delivered(*ends) for ends in loads))

    def _pcus_before(self, stage: str) -> list[str]:
        """Other PCUs whose results reach a stage."""
        return [each for each in self._before_all(stage) if each != stage and self._is_pcu(each)]

    def _computing(self, stage: str) -> Lines:
        before = [self._feeds(each) for each in self._pcus_before(stage)]
        own = self._feeds(stage)
        found = [
            lines
            for origin, lines in self._work
            if origin and origin <= own and not any(origin <= each for each in before)
        ]
        return _NONE.union(*found)

    def _shared(self, stage: str) -> Lines:
        """Lines of a PCU, or of those before it if no operation is left for it."""
        if self._computed[stage]:
            return self._computed[stage]
        return _NONE.union(*(self._computed[each] for each in self._pcus_before(stage)))

    def _held(self, stage: str) -> Lines:
        before = self._before[stage]
        after = [sink.stage for sink in self._part.graph.sinks(stage)]
        if all(isinstance(self._stages[each], Load) for each in before):
            return _joined(self._loads, self._feeds(stage))
        if all(isinstance(self._stages[each], Store) for each in after):
            return _NONE.union(*map(self.of, after))
        return _NONE.union(*(self._shared(each) for each in before if self._is_pcu(each)))


def _by_tensor(nodes: Iterable[ir.Node], *, stores: bool) -> dict[str, Lines]:
    """Lines that load, or that store, each tensor."""
    found: dict[str, list[ir.Node]] = collections.defaultdict(list)
    for node in nodes:
        if stores and isinstance(node, ir.Store | ir.Scatter):
            found[node.view.tensor].append(node)
        elif not stores and isinstance(node, ir.Load | ir.Gather | ir.Scatter):
            # A scatter that adds loads what it adds to.
            found[node.view.tensor].append(node)
    return {tensor: _lines(each) for tensor, each in found.items()}


def _joined(lines: Mapping[str, Lines], tensors: Iterable[str]) -> Lines:
    return _NONE.union(*(lines.get(each, _NONE) for each in tensors))


def _origins(nodes: list[ir.Node]) -> dict[str, _Names]:
    """Tensors that each value depends on; what loops carry depends on all that enters it."""
    found: dict[str, _Names] = collections.defaultdict(frozenset)
    changed = True
    while changed:
        changed = False
        for node in nodes:
            for value, sources, tensors in _steps(node):
                new = found[value].union(tensors, *(found[each] for each in sources))
                if new != found[value]:
                    found[value], changed = new, True
    return found


def _steps(node: ir.Node) -> Iterator[tuple[str, list[str], list[str]]]:
    """Values that a node defines, each with the values and the tensors that it depends on."""
    if isinstance(node, ir.Loop):
        starts = [each.name if isinstance(each, ir.Value) else "" for each in node.operands]
        rows = zip(node.carries, node.nexts, node.results, starts, strict=False)
        for carry, last, result, start in rows:
            yield carry.name, [start, last.name], []
            yield result.name, [start, last.name], []
        return
    tensors = [node.view.tensor] if isinstance(node, ir.Load | ir.Gather) else []
    for result in node.results:
        yield result.name, [each.name for each in used(node)], tensors
