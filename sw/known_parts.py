"""Compiled parts of a kernel, whose images its other options use again."""

from __future__ import annotations

import dataclasses

from sw.chip_program import ChipProgram
from sw.compiled_part import CompiledPart
from sw.language import Schedule
from sw.parts.launch_checks import LaunchOrderError, require_order
from sw.passes.part_compilation import PartCompilation

__all__ = ["KnownParts"]


class KnownParts:
    """Parts of one kernel, compiled for one chip with one placement seed."""

    def __init__(self) -> None:
        self._parts: list[tuple[Schedule, CompiledPart]] = []

    def add(self, schedule: Schedule, part: CompiledPart) -> None:
        """Keep a part, compiled with these choices."""
        self._parts.append((schedule, part))

    def find(self, c: PartCompilation) -> CompiledPart | None:
        """Look for a part with the program and choices of `c`; it has the launches of `c`."""
        for schedule, known in self._parts:
            if schedule == c.schedule and (found := _launched(known, c)):
                return found
        return None


def _launched(known: CompiledPart, c: PartCompilation) -> CompiledPart | None:
    """The known part with the launches of `c`; None if its image does not compute those."""
    if (known.part.program, known.part.arrays) != (c.part.program, c.part.arrays):
        return None
    repeats = [launch.repeat for launch in known.part.launches]
    # An image that is not live for the iterations of its launches has a launch for each.
    for part in (c.part, c.part.singly()):
        if [launch.repeat for launch in part.launches] == repeats:
            try:
                require_order(part, ChipProgram.unpack(c.config, known.image), c.memory)
            except LaunchOrderError:
                return None
            # Predictions depend on the places of the arrays.
            return dataclasses.replace(known, part=part, _predictions={})
    return None
