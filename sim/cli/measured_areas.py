"""Areas of units, measured once and kept in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.progress import Progress

if TYPE_CHECKING:
    from gen.area import UnitArea
    from gen.liberty import Liberty
    from gen.unit_designs import UnitDesign

__all__ = ["measured_areas"]


def measured_areas(
    units: Sequence[UnitDesign], liberty: Liberty | None, progress: Progress
) -> list[UnitArea]:
    """Area of each unit, from the cache if it was measured before.

    Parameters
    ----------
    units : sequence of UnitDesign
    liberty : Liberty or None
        Standard cells for areas in µm².
    progress : Progress
    """
    from gen.area import measure
    from sim.cache import cache_directory

    measured = []
    for number, unit in enumerate(units, 1):
        # yosys is WebAssembly, compiled once per machine.
        first = "; the first start of yosys takes 40 s more" if number == 1 else ""
        with progress.step(f"synthesizing {number} of {len(units)}: {unit.design.top}{first}"):
            measured.append(measure(unit, liberty=liberty, cache=cache_directory() / "area"))
    return measured
