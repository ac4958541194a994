"""Dependence of stored vectors on loaded ones, through buffers, in any timing."""

from __future__ import annotations

import numpy as np

from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import PMU
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Nets, Output
from sw.prove.stream_packets import StreamPackets
from sw.prove.unrolled_loops import visits

__all__ = ["vectors_before"]


def vectors_before(
    program: ChipProgram, nets: Nets, packets: StreamPackets, end: Input, count: int
) -> dict[Output, int]:
    """Least number of vectors that outputs have sent when an input takes its vector of a number.

    A slot is read when all its writers have filled it. The dependence ends at units other than
    PMUs, and at streams that are merged. Of packets that a writer does not take, those count that
    come before the last one it takes.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    packets : StreamPackets
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
        if writer is None:
            continue
        filled, end = visits(writer), Input(PMU, root.at, number)
        needed = int(filled.vectors[filled.turn <= passes.turn[visit]].sum())
        if writer.modulus > 1:
            lengths = packets.arriving(end).lengths
            taken = np.where(np.arange(len(lengths)) % writer.modulus == writer.index, lengths, 0)
            last = min(int(np.searchsorted(np.cumsum(taken), needed)), len(lengths) - 1)
            needed = int(lengths[:last].sum()) + 1
        _join(found, vectors_before(program, nets, packets, end, needed))
    return found


def _join(found: dict[Output, int], more: dict[Output, int]) -> None:
    for root, count in more.items():
        found[root] = max(found.get(root, 0), count)
