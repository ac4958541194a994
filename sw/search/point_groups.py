"""Choice of how many points of a launch an iteration takes together, by estimated cycles.

The units of a point of attention take a vector of keys and one of values a cycle, which two AGCUs
load. Of a chip with more AGCUs, points side by side use the others. A small product is work for few
PCUs, and its weights come by one AGCU: products side by side use the others. So do statistics of
few columns, of which a vector is work for one PCU.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from hw.arch.config import ChipConfig
from sw.ir import nodes as ir
from sw.language import Schedule
from sw.parts.part import Part, PartLaunch
from sw.passes.product_recognition import Product
from sw.search.held_up import CLEAR
from sw.search.part_cycles import part_cycles
from sw.softmax.recognition import has_powers
from sw.stages.pipeline import Pipeline
from sw.stages.recognised import pipelines_of, recognised
from sw.stages.region import Region
from sw.stages.softmax.softmax_product import SoftmaxProduct

__all__ = ["grouped_points"]

#: Ratio from which on two launches are clearly faster than one, whose iterations overlap by more
#: than the estimate counts where they are short.
_CLEAR_APART = 1.25


def grouped_points(
    part: Part, config: ChipConfig, schedule: Schedule, serves: Callable[[Part], bool]
) -> tuple[Part, ...]:
    """The part, or parts whose iterations take several points each, if that is clearly faster.

    Parameters
    ----------
    part : Part
    config : ChipConfig
    schedule : Schedule
        Choices for the kernel.
    serves : callable
        Whether one image computes a part.
    """
    best: tuple[Part, ...] = (part,)
    if part.repeat == 1 or config.agcu.count == 1:
        return best
    work = recognised(part.program, part.arrays, config)
    if not isinstance(work, Product | SoftmaxProduct | Region):
        return best

    def cycles_of(parts: tuple[Part, ...]) -> float:
        found = (part_cycles(each, config, schedule) for each in parts)
        return sum(math.inf if each is None else each for each in found)

    least = cycles_of(best)
    for count in range(2, config.agcu.count + 1):
        parts = _in_groups(part, count)
        if not parts or not serves(parts[0]):
            continue
        if len(parts) > 1 and has_powers(part.program):
            parts = _with_keys(parts, config)
        if not all(map(serves, parts)):
            continue
        cycles = cycles_of(parts)
        if (CLEAR if len(parts) == 1 else _CLEAR_APART) * cycles < least:
            best, least = parts, cycles
    return best


def _in_groups(part: Part, count: int) -> tuple[Part, ...]:
    """A part whose iterations take so many points each, and one of the points that are left.

    An iteration takes one point of each of ``count`` equal ranges, so what it accesses lies as far
    apart as the ranges do. Empty if the launches differ, or have fewer points, or if a later point
    lies before an earlier one.

    Parameters
    ----------
    part : Part
    count : int
    """
    first, *others = part.launches
    strides = [each.stride for each in first.arguments]
    repeat, left = divmod(first.repeat, count)
    if (
        not repeat
        or min(strides) < 0
        or any(
            each.repeat != first.repeat or [every.stride for every in each.arguments] != strides
            for each in others
        )
    ):
        return ()
    arrays = tuple(
        dataclasses.replace(array, points=(count, repeat * stride))
        for array, stride in zip(part.arrays, strides, strict=True)
    )
    launches = tuple(dataclasses.replace(each, repeat=repeat) for each in part.launches)
    parts = [Part(part.program, arrays, launches)]
    if left:
        last = tuple(_behind(each, count * repeat) for each in part.launches)
        parts.append(Part(part.program, part.arrays, last))
    return tuple(parts)


def _behind(launch: PartLaunch, points: int) -> PartLaunch:
    """The launch without its first points."""
    arguments = tuple(
        dataclasses.replace(each, offset=each.offset + points * each.stride)
        for each in launch.arguments
    )
    return dataclasses.replace(launch, arguments=arguments, repeat=launch.repeat - points)


def _with_keys(parts: tuple[Part, ...], config: ChipConfig) -> tuple[Part, ...]:
    """Parts of one loop over keys with the blocks of the first: golden has one block for it."""
    work, pipeline = _best(parts[0], config)
    index = work.loops["key"]

    def change(nodes: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        return tuple(
            node.replace(
                nodes=change(node.body),
                tile=pipeline.block_keys if node.index == index else node.tile,
            )
            if isinstance(node, ir.Loop)
            else node
            for node in nodes
        )

    programs = (
        dataclasses.replace(each.program, nodes=change(each.program.nodes)) for each in parts
    )
    return tuple(
        dataclasses.replace(part, program=program)
        for part, program in zip(parts, programs, strict=True)
    )


def _best(part: Part, config: ChipConfig) -> tuple[SoftmaxProduct, Pipeline]:
    """Products of a part, and their pipeline of fewest cycles by the estimate."""
    work = recognised(part.program, part.arrays, config)
    assert isinstance(work, SoftmaxProduct)
    return work, next(pipelines_of(work, part.arrays, config, part.program.name))
