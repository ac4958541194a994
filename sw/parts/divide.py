"""Division of a program into parts that each become one image and run one after another.

A program that no image computes is cut at values, which then pass through memory. A cut is made
where the slice before it is served, and the search is greedy: every step takes one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec, arrays_of
from sw.ir import nodes as ir
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.parts.order import divisible, ready
from sw.parts.part import Argument, Division, Part, PartLaunch
from sw.parts.peel import peeled
from sw.parts.slices import Cut, cuts, reload, slice_of, stores

__all__ = ["Serves", "divide", "undivided"]

#: Function from a program and the layout of its tensors to why no image computes it, or None.
Serves = Callable[[Program, tuple[ArraySpec, ...]], BadInputError | None]

_DIVIDED = ("unserved", "does-not-fit")


def divide(program: Program, serves: Serves) -> Division:
    """Divide a kernel into parts, each of which one image computes.

    Parameters
    ----------
    program : Program
        After `simplify`.
    serves : callable
        Why no image computes a program, or None. It is asked once for each program.

    Raises
    ------
    BadInputError
        The refusal of the whole program, if no division was found or none is allowed.
    """
    arrays = arrays_of(program)
    refusal = serves(program, arrays)
    if refusal is None:
        return undivided(program)
    found = None
    if refusal.kind in _DIVIDED and divisible(program):
        found = _Divider(arrays, serves).run(program)
    if found is None:
        raise refusal
    return found


def undivided(program: Program) -> Division:
    """A kernel that is one part, launched once."""
    arrays = arrays_of(program)
    launch = PartLaunch(tuple(Argument(each.name) for each in arrays))
    return Division((Part(program, arrays, (launch,)),))


class _Divider:
    """Search for a division: parts so far, and the arrays between them."""

    def __init__(self, arrays: tuple[ArraySpec, ...], serves: Serves) -> None:
        self._serves = serves
        self._arrays = {each.name: each for each in arrays}
        self._intermediates: list[ArraySpec] = []
        self._known: dict[Program, Part | None] = {}
        self._answers: dict[object, bool] = {}

    def run(self, program: Program) -> Division | None:
        """Parts of a program, or None if a step finds none."""
        parts: list[Part] = []
        while program.nodes:
            step = self._stores(program) or self._cut(program)
            if step is None:
                return None
            part, program = step
            parts.append(part)
        return Division(tuple(parts), tuple(self._intermediates))

    def _part(self, program: Program, cut: Sequence[Cut] = ()) -> Part | None:
        """A program as a part, or None if it is not served."""
        if program not in self._known:
            arrays = self._arrays | {
                each.tensor.name: ArraySpec(
                    each.tensor.name, each.tensor.type.shape, each.tensor.type.format, True
                )
                for each in cut
            }
            part = peeled(program, arrays)
            self._known[program] = part if part and self._served(part) else None
        return self._known[program]

    def _served(self, part: Part) -> bool:
        key = (part.program, part.arrays)
        if key not in self._answers:
            self._answers[key] = self._serves(*key) is None
        return self._answers[key]

    def _stores(self, program: Program) -> tuple[Part, Program] | None:
        """A part of as many stores as one image serves, from the first on, and what remains."""
        every = tuple(stores(program.nodes))
        taken: list[ir.Store] = []
        found = None
        for store in every:
            kept = [*taken, store]
            part = slice_of(program, kept)
            rest = slice_of(program, [each for each in every if each not in kept])
            if ready(program, part, rest) and (made := self._part(part)) is not None:
                taken, found = kept, (made, rest)
        return found

    def _cut(self, program: Program) -> tuple[Part, Program] | None:
        """A part that stores values, and what remains."""
        found = (self._cut_for(program, store) for store in stores(program.nodes))
        return next((each for each in found if each is not None), None)

    def _cut_for(self, program: Program, store: ir.Store) -> tuple[Part, Program] | None:
        """A part that stores values which a store needs, and what remains."""
        focus = slice_of(program, [store])
        choices = []
        for cut in cuts(focus, self._arrays):
            part = slice_of(program, (), [cut])
            rest = reload(program, [cut])
            if _computes(part) and ready(program, part, rest) and self._part(part, [cut]):
                choices.append(cut)
        choices.sort(key=lambda each: each.bytes)
        chosen = next((each for each in choices if self._ends(focus, each)), None)
        largest = list(_largest(program, choices))
        if chosen is None and not largest:
            return None
        taken = [chosen or largest[0]]
        for other in largest:
            more = [*taken, other]
            part = slice_of(program, (), more)
            if other not in taken and self._part(part, more):
                taken = more
        made = self._part(slice_of(program, (), taken), taken)
        assert made is not None
        for each in taken:
            name, kind = each.tensor.name, each.tensor.type
            self._arrays[name] = ArraySpec(name, kind.shape, kind.format, True)
            self._intermediates.append(self._arrays[name])
        return made, reload(program, taken)

    def _ends(self, focus: Program, cut: Cut) -> bool:
        """Whether what remains after a cut is one part."""
        return self._part(reload(focus, [cut]), [cut]) is not None


def _computes(program: Program) -> bool:
    """Whether a slice has more than loads, casts and copies."""
    return any(isinstance(node, ir.Matmul | ir.Map | ir.Reduce) for node in walk(program.nodes))


def _largest(program: Program, choices: Sequence[Cut]) -> Iterator[Cut]:
    """The cuts whose values no other cut's slice computes."""
    within = [
        {each.name for node in walk(slice_of(program, (), [cut]).nodes) for each in node.results}
        for cut in choices
    ]
    for cut in choices:
        if sum(cut.value.name in names for names in within) == 1:
            yield cut
