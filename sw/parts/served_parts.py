"""Parts of which one image serves an iteration, with the answers so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.ir.program import Program
from sw.parts.columns import MisplacedColumnsError, column_ranges
from sw.parts.forms.turned_math import with_turned_math
from sw.parts.part import Division, Part
from sw.parts.points.peel import peeled_parts
from sw.parts.slices import slice_of, stores

__all__ = ["ServedParts", "Serves"]

#: Function from a program and the layout of its tensors to why no image computes it, or None.
Serves = Callable[[Program, tuple[ArraySpec, ...]], BadInputError | None]


class ServedParts:
    """Parts of programs that one image serves.

    Parameters
    ----------
    serves : callable
        Why no image computes a program, or None.
    faster : callable
        Whether a first division takes clearly fewer cycles than a second.
    """

    def __init__(self, serves: Serves, faster: Callable[[Division, Division], bool]) -> None:
        self._serves, self._faster = serves, faster
        self._parts: dict[Program, tuple[Part, ...]] = {}
        self._answers: dict[object, bool] = {}
        #: The program of which a part is the first that is served.
        self._whole: dict[Part, Program] = {}
        self._fastest: dict[Part, Part] = {}
        #: Why columns that were asked for are not transferred alone.
        self.misplaced: MisplacedColumnsError | None = None
        #: Why a piece has a format that its unit does not take, however it is divided.
        self.misformed: BadInputError | None = None

    @property
    def asked(self) -> int:
        """Number of distinct programs that were offered to an image."""
        return len(self._answers)

    def of(self, program: Program) -> tuple[Part, ...]:
        """A program as a part, or as a part for each piece of a joined tile; none: not served.

        The rows or columns of all points may be another part, which `fastest` tells.
        """
        if program not in self._parts:
            ranged = self._ranged(program)
            whole = self._first(ranged)
            parts = [whole]
            if whole is None and ranged is not program:
                parts = [self._first(slice_of(ranged, [each])) for each in stores(ranged.nodes)]
            served = tuple(part for part in parts if part is not None)
            self._parts[program] = served if len(served) == len(parts) else ()
        return self._parts[program]

    def fastest(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """The parts with the rows or columns of all points, or with points as launches.

        Rows or columns in segments may be slower than the points one after another. Estimates take
        long, so only parts are compared that a division may have.
        """
        return tuple(map(self._fastest_of, parts))

    def _ranged(self, program: Program) -> Program:
        try:
            return with_turned_math(column_ranges(program))
        except MisplacedColumnsError as error:
            self.misplaced = self.misplaced or error
            return program

    def _first(self, program: Program) -> Part | None:
        """The part with the most points together that is served."""
        found = next(filter(self._is_served, peeled_parts(program)), None)
        if found is not None:
            self._whole[found] = program
        return found

    def _fastest_of(self, part: Part) -> Part:
        if part not in self._fastest:
            found = part
            if _has_segments(part):
                every = peeled_parts(self._whole[part])
                for each in filter(self._is_served, every[every.index(part) + 1 :]):
                    if self._is_better(each, found):
                        found = each
                    if not _has_segments(each):
                        break
            self._fastest[part] = found
        return self._fastest[part]

    def _is_better(self, part: Part, found: Part) -> bool:
        """Whether a part is faster than another one of the same program.

        One with columns in segments must be clearly faster than launches, which overlap.
        """
        own, known = Division((part,)), Division((found,))
        if any(array.segments and array.segments.axis for array in found.arrays):
            return not self._faster(known, own)
        return self._faster(own, known)

    def _is_served(self, part: Part) -> bool:
        key = (part.program, part.arrays)
        if key not in self._answers:
            refusal = self._serves(*key)
            self._answers[key] = refusal is None
            if refusal is not None and refusal.kind == "format":
                self.misformed = self.misformed or refusal
        return self._answers[key]


def _has_segments(part: Part) -> bool:
    return any(array.segments for array in part.arrays)
