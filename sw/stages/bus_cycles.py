"""Estimate of the cycles in which memory's links pass the boxes of a pipeline."""

from __future__ import annotations

import math

from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor
from hw.arch.loops import BoxLoop
from hw.numeric.division import ceil_div
from sw.stages.stage_graph import Load, StageGraph, Store
from sw.timing.prediction import LATENCY

__all__ = ["box_cycles", "boxes_in", "bus_cycles"]


def bus_cycles(graph: StageGraph, config: ChipConfig) -> float:
    """Cycles of the busiest link in one direction, behind a first box or before a last one."""
    totals, largest = [], 0.0
    for kind in (Load, Store):
        links = [0.0] * config.agcu.count
        for _, each in graph.of(kind):
            box = box_cycles(each.descriptor, config)
            links[each.agcu] += box * boxes_in(each.loops)
            largest = max(largest, box)
        totals.append(max(links))
    return max(totals) + largest


def box_cycles(descriptor: Descriptor, config: ChipConfig) -> float:
    """Cycles of a box: its beats, or memory's latency where its rows are short bursts."""
    row = min(descriptor.box[0], descriptor.dims[0]) * descriptor.format.bytes
    beats = ceil_div(row * 8, config.width_bits)
    pace = max(1.0, (LATENCY + beats) / (config.agcu.outstanding * beats))
    return descriptor.box_bytes * 8 / config.width_bits * pace


def boxes_in(loops: tuple[BoxLoop, ...]) -> int:
    """Boxes of a nest, whose counts may depend on the index of the outermost loop."""
    outer, *inner = loops
    if not any(each.slope for each in inner):
        return math.prod(each.count for each in loops)
    indices = range(outer.count)
    return sum(math.prod(each.count + each.slope * index for each in inner) for index in indices)
