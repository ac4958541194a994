"""Dependence of stored vectors on loaded ones, through buffers, in any timing."""

from __future__ import annotations

import numpy as np

from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import PMU
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Nets, Output
from sw.prove.unrolled_loops import visits

__all__ = ["vectors_before"]


def vectors_before(program: ChipProgram, nets: Nets, end: Input, count: int) -> dict[Output, int]:
    """Least number of vectors that outputs have sent when an input takes its vector of a number.

    A slot is read when all its writers have filled it. The dependence ends at units other than
    PMUs, at streams that are merged, and at writers that do not take every packet.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    end : Input
    count : int
        Number of the vector, from 1.
    """
    root = nets.feeds.get(end)
    found: dict[Output, int] = {}
    if not isinstance(root, Output):
        return found
    found[root] = count
    unit = program.unit(root.at)
    reader = unit.readers[root.port] if isinstance(unit, PmuProgram) else None
    if not isinstance(unit, PmuProgram) or reader is None:
        return found
    passes = visits(reader)
    visit = int(np.searchsorted(np.cumsum(passes.vectors), count))
    if visit == len(passes.turn):
        return found
    for number in unit.partners(len(unit.writers) + root.port):
        writer = unit.writers[number]
        if writer is None or writer.modulus > 1:
            continue
        filled = visits(writer)
        needed = int(filled.vectors[filled.turn <= passes.turn[visit]].sum())
        _join(found, vectors_before(program, nets, Input(PMU, root.at, number), needed))
    return found


def _join(found: dict[Output, int], more: dict[Output, int]) -> None:
    for root, count in more.items():
        found[root] = max(found.get(root, 0), count)
