"""Comparison of divisions by the cost model: lane programs behind products, or in own parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.language import Schedule
from sw.parts.part import Division, Part
from sw.passes.choices import constraints_of
from sw.passes.field_limits import Unfit
from sw.passes.parallel import estimate
from sw.passes.product_recognition import Product
from sw.prologue.computed_product import ComputedProduct
from sw.search.alone import START, elements_alone, product_alone
from sw.search.part_cycles import part_cycles
from sw.stages.chip_share import share_of
from sw.stages.recognised import pipelines_of, recognised
from sw.stages.region import Region, TilePart
from sw.stages.stage_graph import Load

__all__ = [
    "CLEAR",
    "LITTLE",
    "compared",
    "cycles_apart",
    "few_rows",
    "held_up",
    "is_decided",
    "loads_again",
]

#: Ratio of cycles from which on a comparison is clear: what a plan that is run with a clock may
#: gain is then not worth the compilation of both forms.
CLEAR = 1.06
#: Nor is it where it is at most this part of all cycles of the kernel.
LITTLE = 0.02


def cycles_apart(product: Product, config: ChipConfig) -> int | None:
    """Cycles of a product and of the lane programs behind it, each by itself on all PCUs.

    What a further launch takes is left out. None if no plan of the product alone fits.

    Parameters
    ----------
    product : Product
        With a chain of lane programs.
    config : ChipConfig
    """
    epilogue = product.epilogue
    assert epilogue is not None
    sent = epilogue.sent[1] if epilogue.chain else product.fmt.accumulator
    cycles = product_alone(product, config, sent)
    if cycles is None:
        return None
    loaded = sent.bits + sum(epilogue.inputs[each].type.format.bits for each in epilogue.tiles)
    programs = sum(len(code.phases) for code in epilogue.chain or epilogue.codes)
    elements, stored = product.m * product.n, product.out.bits
    return cycles + round(elements_alone(config, elements, programs, loaded, stored))


def held_up(division: Division, config: ChipConfig, schedule: Schedule) -> bool:
    """Whether a product with lane programs behind it takes longer than both would by themselves.

    Parameters
    ----------
    division : Division
    config : ChipConfig
    schedule : Schedule
        Choices for the kernel.
    """
    for part in division.parts:
        work = recognised(part.program, part.arrays, config)
        if isinstance(work, Product) and work.epilogue and work.epilogue.may_stand_apart:
            with contextlib.suppress(BadInputError, Unfit):
                own = constraints_of(work, schedule.within(part.program))
                share = share_of(config, part.points)
                apart = cycles_apart(work, share)
                if apart is not None and apart < estimate(work, share, own):
                    return True
    return False


def compared(
    first: Division, other: Division, config: ChipConfig, schedule: Schedule
) -> tuple[float, float] | None:
    """Estimated cycles of the parts that only one of two divisions has, of each division.

    Parameters
    ----------
    first, other : Division
        Of one kernel.
    config : ChipConfig
    schedule : Schedule
        Choices for the kernel.

    Returns
    -------
    (float, float) or None
        None if there is no estimate of one of these parts.
    """
    one = _cycles_of(_lacking(other, first), config, schedule)
    two = _cycles_of(_lacking(first, other), config, schedule)
    return None if one is None or two is None else (one, two)


def is_decided(
    cycles: tuple[float, float], whole: Division, config: ChipConfig, schedule: Schedule
) -> bool:
    """Whether estimates of two divisions are enough to choose the one of fewer cycles.

    Parameters
    ----------
    cycles : (float, float)
        Of the parts that only one of them has, as `compared` gives them.
    whole : Division
        One of the two.
    config : ChipConfig
    schedule : Schedule
        Choices for the kernel.
    """
    less, more = sorted(cycles)
    if CLEAR * less <= more:
        return True
    # Those of a part without an estimate are not counted.
    known = (_cycles_of([each], config, schedule) or 0 for each in whole.parts)
    return CLEAR * less - more <= LITTLE * sum(known)


def _lacking(known: Division, division: Division) -> list[Part]:
    """The parts of a division that a known one lacks."""
    images = {(each.program, each.arrays) for each in known.parts}
    return [each for each in division.parts if (each.program, each.arrays) not in images]


def _cycles_of(parts: Iterable[Part], config: ChipConfig, schedule: Schedule) -> float | None:
    """Estimated cycles of parts; None if there is no estimate of one."""
    total = 0.0
    for part in parts:
        work = recognised(part.program, part.arrays, config)
        if not isinstance(work, Product | Region | ComputedProduct):
            return None
        cycles = part_cycles(part, config, schedule)
        if cycles is None:
            return None
        total += cycles
    return total


def loads_again(part: Part, config: ChipConfig) -> bool:
    """Whether a part with rows on lanes loads elements of a matrix more than once."""
    work = recognised(part.program, part.arrays, config)
    if not isinstance(work, Region) or not work.reduces:
        return False
    matrices = {each.tensor for each in work.inputs.values() if each.part is TilePart.BLOCK}
    pipeline = next(pipelines_of(work, part.arrays, config, part.program.name))
    return any(
        loop.count > 1 and loop.step == 0
        for _, load in pipeline.graph.of(Load)
        if part.arrays[load.argument].name in matrices
        for loop in load.loops
    )


def few_rows(part: Part, config: ChipConfig) -> bool:
    """Whether rows with statistics leave PCUs idle, and are long beside the start of a launch.

    What is made of the statistics may be faster by itself, in blocks that take all PCUs.
    """
    work = recognised(part.program, part.arrays, config)
    if not isinstance(work, Region) or not work.reduces or not config.pcu.lanes:
        return False
    group = config.width_bits // 16
    cycles = work.columns * max(1, config.grid_columns // config.pcu.lanes)
    return work.rows <= group * (config.pcu_count - 1) and cycles > START
