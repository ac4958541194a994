"""Choice of a pipeline with rows on lanes: how rows pass and on which grid, best first."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from sw.array_spec import ArraySpec
from sw.fabric.merges import MERGED, MOST_COLLECTED
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import Unfit
from sw.search.best_first import BestFirst
from sw.stages.grids import Grid, grids, opened
from sw.stages.pipeline import Pipeline
from sw.stages.region import Region, TilePart
from sw.stages.rows.row_cycles import least_cycles
from sw.stages.rows.row_frame import ResultBuffers, Streamed
from sw.stages.rows.row_pipeline import RowPipeline

__all__ = ["Reading", "row_pipelines"]

#: Columns of stored boxes, and write engines of a buffer of results, that are tried. Results that
#: take little of a PMU leave slots and engines to rows.
_RESULTS = (MAX_BOX, 2), (MAX_BOX // 4, 2), (MAX_BOX // 4, 1)
#: The same for rows in pieces, whose results pass in pieces, too.
_PIECES = (MAX_BOX, 2), (MAX_BOX // 2, 2), (MAX_BOX // 4, 2), (MAX_BOX // 4, 1)
#: Most chains of a line, whose results two buffers take.
_COPIES = 2 * MOST_COLLECTED
#: Whole rows in a buffer.
_ONCE = Streamed.NOTHING, Streamed.ONCE
#: How much faster a pipeline must be that loads rows again for each of its phases.
_AGAIN = 1.2


@dataclasses.dataclass(frozen=True)
class Reading:
    """A region, and lane programs that compute it.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
    """

    region: Region
    codes: tuple[LaneCode, ...]


#: Bound, number and pipeline of a choice, as of `BestFirst`.
_Group: TypeAlias = tuple[float, int, Callable[[], list[tuple[float, int, Pipeline]]]]


@dataclasses.dataclass(frozen=True)
class _Choice:
    """A reading of a region, how its rows pass, buffers of its results, and a grid."""

    reading: Reading
    streamed: Streamed
    results: ResultBuffers
    grid: Grid

    @property
    def once(self) -> bool:
        """Whether each row is loaded a single time: for one phase, or kept in a buffer for all."""
        single = self.reading.codes[0].packet_phases == 1
        return self.streamed in _ONCE or (self.streamed is Streamed.ROWS and single)

    def alike(self, lines: int) -> object:
        """Key of the choice with so many lines; choices of equal keys are one."""
        grid = dataclasses.replace(self.grid, lines=lines)
        return id(self.reading), self.streamed, self.results, grid

    @property
    def weight(self) -> float:
        """By how much its estimated cycles count more."""
        return 1.0 if self.once else _AGAIN


def row_pipelines(
    region: Region,
    codes: tuple[LaneCode, ...],
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    *,
    in_order: bool,
    others: Sequence[Reading] = (),
    beside: Iterable[Pipeline | Unfit] = (),
) -> Iterator[Pipeline | Unfit]:
    """Pipelines for a region with rows on lanes, by their estimated cycles.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
        Lane programs; all but the first have one phase.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    in_order : bool
        Whether the order matters: else each is yielded when it is found.
    others : sequence of Reading
        Other choices of the region and its lane programs.
    beside : iterable of Pipeline or Unfit
        Pipelines of another kind, of which the first that fits comes in its turn by the estimate,
        and all others behind those with rows on lanes.

    Yields
    ------
    Pipeline or Unfit
        Why a choice does not fit, behind those that fit. Rows that pass in pieces are loaded again
        for each phase; where there are several, they must be `_AGAIN` times as fast as whole ones.
    """
    choices = _choices(region, [Reading(region, codes), *others], config)
    if not in_order:
        for each in choices:
            try:
                yield each if isinstance(each, Unfit) else _frame(each, arrays, config).pipeline()
            except Unfit as problem:
                yield problem
        yield from beside
        return
    problems: dict[int, Unfit] = {}
    groups: list[_Group] = []
    alike: set[object] = set()
    count = len(choices)
    for number, choice in enumerate(choices):
        if isinstance(choice, Unfit):
            problems[number] = choice
            continue
        # Of equal estimates the one of fewest lines comes first.
        number += choice.grid.lines * count
        try:
            frame = _frame(choice, arrays, config)
            if (same := choice.alike(frame.lines)) in alike:
                continue
            alike.add(same)
            bound = choice.weight * least_cycles(frame)
        except Unfit as problem:
            problems[number] = problem
            continue
        group = functools.partial(opened, number, frame.pipeline, problems, choice.weight)
        groups.append((bound, number, functools.cache(group)))
    unfit, first, rest = _first_of(beside)
    if first is not None:
        groups.append((first.cycles, -1, lambda: [(first.cycles, -1, first)]))
    yield from BestFirst(groups)
    yield from rest
    yield from unfit
    yield from (problems[each] for each in sorted(problems, key=lambda each: each % count))


def _first_of(
    pipelines: Iterable[Pipeline | Unfit],
) -> tuple[list[Unfit], Pipeline | None, Iterator[Pipeline | Unfit]]:
    """Refusals before the first pipeline, the pipeline or None, and all candidates behind it."""
    problems: list[Unfit] = []
    rest = iter(pipelines)
    for each in rest:
        if not isinstance(each, Unfit):
            return problems, each, rest
        problems.append(each)
    return problems, None, rest


def _choices(region: Region, readings: list[Reading], config: ChipConfig) -> list[_Choice | Unfit]:
    """All ways to pass rows on all grids, those of fewer lane programs first."""
    vectors = any(each.part is TilePart.ROW for each in region.inputs.values())
    found: list[_Choice | Unfit] = []
    readings = sorted(readings, key=lambda each: len(each.codes))
    for reading, streamed in itertools.product(readings, Streamed):
        if streamed is Streamed.VECTORS and not vectors:
            continue
        try:
            all_grids = grids(
                config, len(reading.codes), _COPIES, sharing=AGCU_STREAMS, shares=MERGED
            )
        except Unfit as problem:
            found.append(problem)
            continue
        apart = (False, True) if len(region.outputs) > 1 else (False,)
        buffers = _RESULTS if streamed in _ONCE else _PIECES
        for (widest, engines), alone in itertools.product(buffers, apart):
            results = ResultBuffers(widest, engines, alone)
            found += [
                _Choice(reading, streamed, results, each)
                for each in all_grids
                # One engine cannot serve as many PCUs.
                if engines > 1 or each.copies // each.share <= MERGED
            ]
    return found


def _frame(choice: _Choice, arrays: tuple[ArraySpec, ...], config: ChipConfig) -> RowPipeline:
    reading, grid = choice.reading, choice.grid
    passed = choice.streamed, choice.results
    return RowPipeline(reading.region, reading.codes, arrays, config, grid, *passed)
