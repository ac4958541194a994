"""Search for a division: cuts of values, after each of which the slice before is served.

Every step takes the part that seems best, and another one only if what remains has no division.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.parts.cut_choices import computes, is_counted, is_operand, largest, loads
from sw.parts.forms.cast_vectors import vector_casts
from sw.parts.narrow_cut import narrow_cuts
from sw.parts.order import ready
from sw.parts.part import Division, Part
from sw.parts.served_parts import ServedParts, Serves
from sw.parts.slices import Cut, cuts, reload, slice_of, stores
from sw.parts.statistic_cuts import statistic_cuts
from sw.parts.step import FormerSteps, Step

__all__ = ["DivisionSearch", "Estimates"]


@dataclasses.dataclass(frozen=True)
class Estimates:
    """Answers of the cost model that the search needs; all are no by default.

    Parameters
    ----------
    faster : callable
        Whether a first division takes fewer cycles than a second.
    loads_again : callable
        Whether a part loads elements of a matrix more than once.
    few_rows : callable
        Whether a part with statistics has so few rows that what is made of these may be faster by
        itself.
    """

    faster: Callable[[Division, Division], bool] = lambda found, whole: False
    loads_again: Callable[[Part], bool] = lambda part: False
    few_rows: Callable[[Part], bool] = lambda part: False


#: Most programs without a division that are met before a program is refused.
_MOST_DEAD = 16
#: Slices asked for in all, at most, for each one of the first steps; or this many more.
_SHARED, _FEW = 2, 64
#: Rounds over the steps with shared values, each with steps one level deeper behind a value.
_DEPTH = 3
#: Nodes of element math.
_ELEMENT_MATH = ir.Loop | ir.Load | ir.Store | ir.Map | ir.Cast | ir.Full | ir.Buffer


class DivisionSearch:
    """Search for a division, depth first, with the answers so far.

    Parameters
    ----------
    program : Program
    serves, held, estimates, former
        As of `sw.parts.divide.divide`.
    numbers : bool
        Whether numbers of rows or columns may pass through memory.
    whole : bool
        Whether one image serves the program.
    """

    def __init__(
        self,
        program: Program,
        serves: Serves,
        held: frozenset[str],
        estimates: Estimates,
        former: FormerSteps,
        *,
        numbers: bool,
        whole: bool = False,
    ) -> None:
        self._served, self._faster = ServedParts(serves, estimates.faster), estimates.faster
        self._loads_again, self._few_rows = estimates.loads_again, estimates.few_rows
        self._numbers_may_pass, self._whole = numbers, whole
        self._former = former.setdefault((whole, numbers), {})
        self._held = held
        self._names = frozenset(each.name for each in program.tensors)
        self._found: dict[Program, tuple[Step, ...]] = {}
        self._dead: set[Program] = set()
        #: Slices with an answer from which on no shared value is tried.
        self._most_answers = 0

    @property
    def refusal(self) -> BadInputError | None:
        """Refusal of a piece that no division serves, or None."""
        return self._served.misplaced or self._served.misformed

    def run(self, program: Program) -> Division | None:
        """Parts of a program, or None if none were found."""
        steps = self._search(program)
        if steps is None:
            return None
        self._most_answers = max(_SHARED * self._served.asked, self._served.asked + _FEW)
        for depth in range(_DEPTH):
            steps = self._with_shared(program, steps, depth)
        before = (program, *(each.rest for each in steps))
        self._former |= zip(before, steps)
        stored = (cut.tensor for step in steps for cut in step.cuts)
        between = tuple(ArraySpec(each.name, each.type.shape, each.type.format) for each in stored)
        return Division(self._parts(steps), between)

    def _search(self, program: Program) -> tuple[Step, ...] | None:
        if not program.nodes:
            return ()
        if program in self._found:
            return self._found[program]
        if program in self._dead or len(self._dead) >= _MOST_DEAD:
            return None
        for begun in self._begun(program):
            others = self._search(begun[-1].rest)
            if others is not None:
                self._found[program] = (*begun, *others)
                return self._found[program]
        self._dead.add(program)
        return None

    def _begun(self, program: Program) -> Iterator[tuple[Step, ...]]:
        """The first steps of a program, best first: that of a former search, if it is served."""
        former = self._former.get(program)
        if former is not None:
            own = slice_of(program, self._stored(program, former), former.cuts)
            if self._served.of(own) == former.parts:
                yield (former,)
        for step in self._steps(program):
            yield from dict.fromkeys((self._apart(program, step), (step,)))

    def _with_shared(
        self, program: Program, steps: tuple[Step, ...], depth: int
    ) -> tuple[Step, ...]:
        """The steps, or faster ones that store values which several of them compute.

        The steps behind such a value are those without others, or so many levels deep with them.
        """
        taken: list[Step] = []
        while steps:
            known = steps[0] is self._former.get(program)
            for cut in () if known else self._shared(program, steps[0]):
                if self._served.asked >= self._most_answers:
                    break
                step = self._step(program, [cut])
                others = None if step is None else self._search(step.rest)
                if step is not None and others is not None:
                    if depth:
                        others = self._with_shared(step.rest, others, depth - 1)
                    other = (step, *others)
                    steps = other if self._is_faster(other, steps) else steps
            first, *behind = steps
            taken.append(first)
            program, steps = first.rest, tuple(behind)
        return tuple(taken)

    def _apart(self, program: Program, step: Step) -> tuple[Step, ...]:
        """A step, or one of the statistics that it needs and one of what is made of them.

        A part that loads its matrix once stays whole, but for few rows of a kernel in parts.
        """
        known = self._parts([step])
        few = not self._whole and any(map(self._few_rows, known))
        if not few and not any(map(self._loads_again, known)):
            return (step,)
        own = slice_of(program, self._stored(program, step), step.cuts)
        statistics = [
            each for each in statistic_cuts(own, self._names) if each.value.name not in self._held
        ]
        first = self._step(program, statistics) if statistics else None
        if first is None:
            return (step,)
        kept = {each.value.name for each in step.cuts}
        behind = [each for each in cuts(first.rest, self._names) if each.value.name in kept]
        if len(behind) < len(kept):
            return (step,)
        later = tuple(stores(step.rest.nodes))
        stored = [each for each in stores(first.rest.nodes) if each not in later]
        parts = self._served.of(slice_of(first.rest, stored, behind))
        rest = reload(slice_of(first.rest, later), behind)
        steps = (first, Step(parts, tuple(behind), rest))
        return steps if parts and self._is_faster(steps, (step,)) else (step,)

    @staticmethod
    def _stored(program: Program, step: Step) -> list[ir.Store]:
        """The stores of a program that a step has."""
        later = tuple(stores(step.rest.nodes))
        return [each for each in stores(program.nodes) if each not in later]

    def _is_faster(self, steps: tuple[Step, ...], than: tuple[Step, ...]) -> bool:
        return self._faster(Division(self._parts(steps)), Division(self._parts(than)))

    def _shared(self, program: Program, step: Step) -> Iterator[Cut]:
        """The last values that a step computes and what remains computes again."""
        behind = {each.value.name for each in cuts(step.rest, self._names)} - self._held
        own = slice_of(program, self._stored(program, step), step.cuts)
        shared = [each for each in cuts(own, self._names) if each.value.name in behind]
        return (cut for cut in largest(program, shared) if computes(slice_of(program, (), [cut])))

    def _steps(self, program: Program) -> Iterator[Step]:
        """Parts that may come first, best first."""
        step = self._stores(program)
        if step is not None:
            yield from self._narrow(program, step)
            yield step
            return
        for store in stores(program.nodes):
            yield from self._cuts(program, store)

    def _stores(self, program: Program) -> Step | None:
        """As many stores as one image serves, from the first on."""
        every = tuple(stores(program.nodes))
        taken: list[ir.Store] = []
        found = None
        for store in every:
            kept = [*taken, store]
            own = slice_of(program, kept)
            rest = slice_of(program, [each for each in every if each not in kept])
            parts = self._served.of(own) if ready(program, own, rest) else ()
            if len(parts) == 1 or (parts and found is None):
                taken, found = kept, Step(parts, (), rest)
        return found

    def _narrow(self, program: Program, step: Step) -> Iterator[Step]:
        """Element math of rows or columns alone that the step's part would repeat."""
        parts = self._parts([step])
        found = narrow_cuts(parts[0].program) if len(parts) == 1 else []
        # The part may be one iteration of loops over points.
        every = {each.value.name: each for each in cuts(program, self._names)}
        taken: list[Cut] = []
        own = None
        for cut in (every.get(each.value.name) for each in found):
            # What the rest does not compute again is stored for nothing.
            if cut is None or cut.value.name in self._held or not self._remains(own, cut):
                continue
            if step_with := self._step(program, [*taken, cut]):
                taken, own = [*taken, cut], step_with
        yield from filter(None, (self._with_casts(program, taken, own, step), own))

    def _with_casts(
        self, program: Program, taken: Sequence[Cut], own: Step | None, step: Step
    ) -> Step | None:
        """A step that stores casts of vectors, too, if it and what is behind it are faster."""
        casts = [each for each in vector_casts(program, self._names) if self._remains(own, each)]
        if not casts or (found := self._step(program, [*taken, *casts])) is None:
            return None
        behind, others = self._search(found.rest), self._search((own or step).rest)
        if behind is None or others is None:
            return None
        return found if self._is_faster((found, *behind), (own or step, *others)) else None

    def _remains(self, step: Step | None, cut: Cut) -> bool:
        """Whether the program behind a step still computes a value."""
        return step is None or any(
            each.value.name == cut.value.name for each in cuts(step.rest, self._names)
        )

    def _cuts(self, program: Program, store: ir.Store) -> Iterator[Step]:
        """Cuts of values that a store needs."""
        focus = slice_of(program, [store])
        choices = []
        possible = (each for each in cuts(focus, self._names) if each.value.name not in self._held)
        reduced = {each.axis for each in walk(focus.nodes) if isinstance(each, ir.Reduce)}
        for cut in sorted(possible, key=lambda each: (is_counted(each, reduced), each.bytes)):
            own = slice_of(program, (), [cut])
            useful = computes(own) or is_operand(focus, cut)
            allowed = self._numbers_may_pass or loads(own)
            if useful and allowed and self._step(program, [cut]) is not None:
                choices.append(cut)
        # A cut after which the store is one part comes first, then those of the largest slices.
        widest = [each for each in largest(program, choices) if not isinstance(each.node, ir.Iota)]
        order = [*self._end(program, focus, choices), *widest, *choices]
        for first in dict.fromkeys(order):
            taken = [first]
            # The store of an invariant is in no loop, and so alone.
            for other in () if first.invariant else widest:
                if other in taken or other.invariant:
                    continue
                if self._joins(program, taken, other):
                    taken.append(other)
            for other in choices:
                if self._is_repeated(program, taken, other):
                    taken.append(other)
            step = self._step(program, taken)
            if step is not None:
                yield step

    def _joins(self, program: Program, taken: Sequence[Cut], other: Cut) -> bool:
        """Whether one image stores a value, too, and is not slower than parts of their own."""
        joined, first = self._step(program, [*taken, other]), self._step(program, taken)
        if joined is None or first is None:
            return joined is not None
        behind = (each for each in cuts(first.rest, self._names) if each.value == other.value)
        alone = next((self._step(first.rest, [each]) for each in behind), None)
        if alone is None:
            return True
        parts = self._parts([first, alone])
        nodes = itertools.chain.from_iterable(walk(each.program.nodes) for each in parts)
        if any(isinstance(each, ir.Matmul) for each in nodes):
            return True
        return not self._faster(Division(parts), Division(self._parts([joined])))

    def _end(self, program: Program, focus: Program, choices: Sequence[Cut]) -> list[Cut]:
        """A cut after which a store is one part, as narrow as the first.

        It is the last one behind a product, and the fastest one of element math alone.
        """
        ends = (each for each in choices if self._served.of(reload(focus, [each])))
        found = next(ends, None)
        if found is None:
            return []
        ends = (each for each in ends if each.bytes == found.bytes)
        own = walk(slice_of(program, (), [found]).nodes)
        if any(isinstance(each, ir.Matmul) for each in own):
            *_, found = (found, *ends)
        elif all(isinstance(each, _ELEMENT_MATH) for each in walk(focus.nodes)):
            for each in ends:
                if self._faster(*(self._both(program, focus, cut) for cut in (each, found))):
                    found = each
        return [found]

    def _both(self, program: Program, focus: Program, cut: Cut) -> Division:
        """The part of a value, and behind it that of a store."""
        step = self._step(program, [cut])
        assert step is not None
        return Division(self._served.fastest((*step.parts, *self._served.of(reload(focus, [cut])))))

    def _is_repeated(self, program: Program, taken: Sequence[Cut], other: Cut) -> bool:
        """Whether a value that the part computes anyway would be computed again behind it.

        It is a statistic, or what numbers of rows or columns choose: no later program has those.
        """
        if other in taken or other.invariant:
            return False
        if not isinstance(other.node, ir.Reduce):
            made = walk(slice_of(program, (), [other]).nodes)
            if not any(isinstance(each, ir.Iota) for each in made):
                return False
        own, rest = slice_of(program, (), taken), reload(program, taken)
        both = all(other.node in walk(each.nodes) for each in (own, rest))
        return both and self._step(program, [*taken, other]) is not None

    def _step(self, program: Program, taken: Sequence[Cut]) -> Step | None:
        """The parts that store some values, or None if they are not served."""
        own, rest = slice_of(program, (), taken), reload(program, taken)
        if not ready(program, own, rest):
            return None
        parts = self._served.of(own)
        return Step(parts, tuple(taken), rest) if parts else None

    def _parts(self, steps: Sequence[Step]) -> tuple[Part, ...]:
        return self._served.fastest(part for step in steps for part in step.parts)
