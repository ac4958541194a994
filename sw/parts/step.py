"""Step of a division: its first parts, and the program that remains."""

from __future__ import annotations

import dataclasses

from sw.ir.program import Program
from sw.parts.part import Part
from sw.parts.slices import Cut

__all__ = ["Step"]


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
