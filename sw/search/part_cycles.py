"""Estimated cycles of a part of a kernel, by the cost model."""

from __future__ import annotations

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.language import Schedule
from sw.parts.part import Part
from sw.passes.choices import constraints_of
from sw.passes.field_limits import Unfit
from sw.passes.parallel import estimate, repeated_estimate
from sw.passes.product_recognition import Product
from sw.search.alone import START
from sw.stages.chip_share import share_of
from sw.stages.recognised import pipelines_of, recognised

__all__ = ["part_cycles"]

#: Cycles that an iteration of a product takes longer than by the estimate: waits at its ends, which
#: points beside one another share.
_BETWEEN = 32


def part_cycles(part: Part, config: ChipConfig, schedule: Schedule) -> float | None:
    """Estimated cycles of all launches of a part; None if there is no estimate.

    Parameters
    ----------
    part : Part
        All points of an iteration are counted.
    config : ChipConfig
    schedule : Schedule
        Choices for the kernel.
    """
    try:
        found = _of_iterations(part, config, schedule)
    except (BadInputError, Unfit):
        return None
    if found is None:
        return None
    once, again = found
    return sum(once + (launch.repeat - 1) * again for launch in part.launches)


def _of_iterations(
    part: Part, config: ChipConfig, schedule: Schedule
) -> tuple[float, float] | None:
    """Estimated cycles of a part's first iteration, and of a further one, which overlaps it."""
    work = recognised(part.program, part.arrays, config)
    if isinstance(work, Product):
        own = constraints_of(work, schedule.within(part.program))
        share = share_of(config, part.points)
        return estimate(work, share, own), _BETWEEN + repeated_estimate(work, share, own)
    pipeline = next(pipelines_of(work, part.arrays, config, part.program.name))
    if not pipeline.cycles:
        return None
    return START + pipeline.cycles, pipeline.cycles - pipeline.start
