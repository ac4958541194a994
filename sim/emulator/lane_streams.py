"""Bit-exact model of a PCU's lanes: packets of their streams to vectors of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import PhaseSource, ResultForm
from hw.numeric.division import ceil_div
from hw.numeric.phase_results import phase_results, vectors
from sw.prove.phase_runs import PhaseRuns

__all__ = ["lane_results"]

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

#: Vectors per block, small enough for a processor cache.
_BLOCK_VECTORS = 1 << 12


def lane_results(
    chip: ChipConfig,
    program: LaneProgram,
    runs: PhaseRuns,
    streams: Mapping[PhaseSource, Bytes],
    carried: Array,
) -> Bytes:
    """Vectors of all results, of many rounds of the phases at a time where their packets agree.

    Parameters
    ----------
    chip : ChipConfig
    program : LaneProgram
    runs : PhaseRuns
        All of them end.
    streams : mapping of PhaseSource to array of uint8, vectors × bytes
        The streams that it takes, behind the filters.
    carried : (1, STATISTICS, 2 · words of a vector) array of uint32
        Statistics at the start; at the end those that are left, if the results depend on them.
    """
    words = chip.grid_columns
    sources = {each: np.ascontiguousarray(data).view(np.uint32) for each, data in streams.items()}
    none: Array = np.zeros((0, words), np.uint32)
    beside = sources.get(PhaseSource.AUXILIARY, none)
    places = np.cumsum(runs.sizes) - runs.sizes
    out = np.empty((int(runs.sizes.sum()), words), np.uint32)
    for rounds in _blocks(runs, len(program.joined), single=program.carries):
        statistics = carried if program.carries else np.repeat(carried, len(rounds), axis=0)
        for number, phase in enumerate(program.joined):
            own = rounds * len(program.joined) + number
            if own[0] >= runs.whole:
                break
            first = own[0]
            packets = np.zeros((len(own), 1, 2 * words), np.uint32)
            if phase.source is not PhaseSource.STATISTICS:
                packets = sources[phase.source][_range(runs.firsts[own], runs.counts[first])]
            auxiliary = beside[_range(runs.beside_firsts[own], runs.besides[first])]
            found = phase_results(
                phase,
                program.constants,
                packets,
                auxiliary,
                statistics,
                chip.pcu.function_bits,
            )
            if phase.result is not ResultForm.NONE:
                sent = vectors(found.reshape(len(own), -1), phase.result, words)
                out[_range(places[own], sent.shape[1])] = sent
    return out.view(np.uint8)


def _range(firsts: Ints, count: int) -> Ints:
    """Numbers of so many vectors from each of the first ones on."""
    numbers: Ints = firsts[:, np.newaxis] + np.arange(count)
    return numbers


def _blocks(runs: PhaseRuns, phases: int, *, single: bool) -> Iterator[Ints]:
    """Rounds of the phases whose packets agree, in blocks; the last round may have fewer phases."""
    rounds = ceil_div(runs.whole, phases)
    if single:
        yield from (np.array([number]) for number in range(rounds))
        return
    counts = np.pad(runs.counts, (0, rounds * phases - runs.whole))
    shapes = counts.reshape(rounds, phases)
    for shape in np.unique(shapes, axis=0):
        alike = np.flatnonzero((shapes == shape).all(axis=1))
        step = max(1, _BLOCK_VECTORS // int(shape.sum()))
        for at in range(0, len(alike), step):
            yield alike[at : at + step]
