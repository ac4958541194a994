"""Choice of how many points of a launch an iteration takes together, by estimated cycles.

The units of one point take a vector of keys and one of values a cycle, which two AGCUs load. Of a
chip with more AGCUs, points side by side use the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from hw.arch.config import ChipConfig
from sw.ir import nodes as ir
from sw.parts.part import Part
from sw.parts.point_groups import in_groups
from sw.search.alone import START
from sw.search.held_up import CLEAR
from sw.softmax.recognition import has_powers
from sw.stages.pipeline import Pipeline
from sw.stages.recognised import pipelines_of, recognised
from sw.stages.softmax.softmax_product import SoftmaxProduct

__all__ = ["grouped_points"]


def grouped_points(
    part: Part, config: ChipConfig, serves: Callable[[Part], bool]
) -> tuple[Part, ...]:
    """The part, or parts whose iterations take several points each, if that is clearly faster.

    Parameters
    ----------
    part : Part
    config : ChipConfig
    serves : callable
        Whether one image computes a part.
    """
    best: tuple[Part, ...] = (part,)
    if part.repeat == 1 or not has_powers(part.program):
        return best
    least = _cycles(part, config)
    for count in range(2, config.agcu.count + 1):
        parts = in_groups(part, count)
        if not parts or not all(map(serves, parts)):
            continue
        if len(parts) > 1:
            parts = _with_keys(parts, config)
        cycles = sum(_cycles(each, config) for each in parts)
        if CLEAR * cycles < least:
            best, least = parts, cycles
    return best


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
    """What a part computes, and the pipeline of fewest cycles by the estimate."""
    work = recognised(part.program, part.arrays, config)
    assert isinstance(work, SoftmaxProduct)
    return work, next(pipelines_of(work, part.arrays, config, part.program.name))


def _cycles(part: Part, config: ChipConfig) -> float:
    """Estimated cycles of all launches of a part, whose iterations start while others end."""
    once = _best(part, config)[1].cycles
    return sum(once + (launch.repeat - 1) * (once - START) for launch in part.launches)
