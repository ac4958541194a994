"""Step of a division: its first parts, and the program that remains."""

from __future__ import annotations

import dataclasses

from sw.ir.program import Program
from sw.parts.part import Part
from sw.parts.slices import Cut

__all__ = ["FormerSteps", "Step"]


@dataclasses.dataclass(frozen=True)
class Step:
    """Parts that compute the first values or stores of a program, and the remaining program.

    Parameters
    ----------
    parts : tuple of Part
        One part, or one for each piece of a joined tile.
    cuts : tuple of Cut
        Values that these parts store in memory and the remaining program loads.
    rest : Program
        The remaining program.
    """

    parts: tuple[Part, ...]
    cuts: tuple[Cut, ...]
    rest: Program


#: First steps of programs that searches have taken, for each kind of search: whether one image
#: serves the whole, and whether numbers of rows or columns may pass through memory.
FormerSteps = dict[tuple[bool, bool], dict[Program, Step]]
