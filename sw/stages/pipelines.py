"""Choice of a pipeline for a region of element math, best first."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

from hw.arch.config import ChipConfig
from hw.arch.lanes.lane_phase import mixes_halves
from hw.arch.lanes.phase_word import PHASES
from hw.numeric.division import ceil_div
from hw.numeric.formats import int8
from sw.array_spec import ArraySpec, points_of
from sw.fabric.merges import MERGED
from sw.lane_codes.balanced_codes import balanced_codes
from sw.lane_codes.joined_codes import joined_firsts
from sw.lane_codes.lane_code import LaneCode, lower_halves
from sw.lane_codes.lane_codes import lane_codes
from sw.lane_codes.late_statistics import sent_late
from sw.language.program_error import ProgramError
from sw.passes.field_limits import Unfit, unfit
from sw.stages.chip_share import (
    beside_text,
    graph_of_all_points,
    homes_of_all_points,
    share_of,
)
from sw.stages.columns.column_pipeline import column_pipelines
from sw.stages.elements.element_pipeline import element_pipelines
from sw.stages.grids import most_chains
from sw.stages.move_pipelines import move_pipelines, moves
from sw.stages.pipeline import Pipeline, fitting
from sw.stages.region import Region, TilePart
from sw.stages.rows.row_choices import Reading, row_pipelines
from sw.timing.timed_lanes import CHANGE

__all__ = ["pipelines"]

_VECTORS = TilePart.ROW, TilePart.COLUMN

#: Most columns of which all subsets are tried to know whether there is a pipeline.
_SUBSETS = 3


def pipelines(
    region: Region,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    name: str,
    *,
    in_order: bool = True,
) -> Iterator[Pipeline]:
    """Pipelines for a region on a chip, best first.

    Parameters
    ----------
    region : Region
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.
    in_order : bool
        Whether the best must come first: to know whether there is one takes less time.

    Raises
    ------
    BadInputError
        If none fits; the message names what is needed and what there is.
    ProgramError
        At a node that no lane program computes.
    """
    arrays = tuple(_in_every_row(each, region) for each in arrays)
    points = points_of(arrays)
    try:
        share = share_of(config, points)
    except Unfit as problem:
        return fitting([problem], name)
    found = fitting(_candidates(region, arrays, share, in_order=in_order), name)
    return found if points == 1 else (_of_points(each, share, arrays) for each in found)


def _of_points(pipeline: Pipeline, share: ChipConfig, arrays: tuple[ArraySpec, ...]) -> Pipeline:
    """The pipeline of all points, of which the first is on a share of the chip."""
    points = points_of(arrays)
    return dataclasses.replace(
        pipeline,
        graph=graph_of_all_points(pipeline.graph, share, arrays, points),
        homes=homes_of_all_points(pipeline.homes, share, points),
        summary=beside_text(points) + pipeline.summary,
    )


def _in_every_row(array: ArraySpec, region: Region) -> ArraySpec:
    """A tensor of one element as one of that element in every row."""
    names = [each.tensor for each in region.inputs.values() if each.part is TilePart.COLUMN]
    if array.name not in names or array.matrix != (1, 1):
        return array
    return dataclasses.replace(array, shape=(region.rows, 1), row_pitch=0)


def _candidates(
    region: Region, arrays: tuple[ArraySpec, ...], config: ChipConfig, *, in_order: bool
) -> Iterator[Pipeline | Unfit]:
    turned = any(each.part is TilePart.TURNED for each in region.inputs.values())
    if (turned or region.whole == {0}) and any(each.segments for each in arrays):
        rule = "lie one behind another for columns on lanes and for transposes"
        yield unfit("Rows", rule, region.rows)
        return
    if moves(region):
        yield from move_pipelines(region, arrays, config)
        return
    if config.pcu.lanes == 0:
        yield Unfit(
            "Element math needs lanes, and `pcu.lanes` is 0", value=0, rule="PCUs with lanes"
        )
        return
    if region.whole == {0}:
        codes = _codes(region, config, 1)
        if not (again := _taken_again(region, codes)):
            yield from column_pipelines(region, codes, arrays, config)
        else:
            yield _used_again(again)
        return
    parts = [each.part for each in region.inputs.values()]
    vectors = any(each in parts for each in _VECTORS)
    beside: Iterator[Pipeline | Unfit] = iter(())
    if not region.whole and (not vectors or _is_even(region, arrays)):
        beside = _in_blocks(region, arrays, config, in_order=in_order, alone=not vectors)
    if region.whole or vectors:
        yield from _on_rows(region, arrays, config, in_order=in_order, beside=beside)
    else:
        yield from beside


def _is_even(region: Region, arrays: tuple[ArraySpec, ...]) -> bool:
    """Whether a tile is loaded, and every result is as large."""
    results = [each for each in arrays if each.name in region.outputs.values()]
    tiles = any(each.part is TilePart.BLOCK for each in region.inputs.values())
    return tiles and all(each.matrix == (region.rows, region.columns) for each in results)


def _on_rows(
    region: Region,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    *,
    in_order: bool,
    beside: Iterator[Pipeline | Unfit],
) -> Iterator[Pipeline | Unfit]:
    """Pipelines with rows on lanes, and others beside them."""
    codes = _codes(region, config, 0, phases=PHASES if region.whole else 1)
    if again := _taken_again(region, codes):
        yield _used_again(again)
        return
    build = functools.partial(row_pipelines, arrays=arrays, config=config, in_order=in_order)
    if in_order:
        yield from build(
            region,
            codes,
            others=_other_readings(region, codes, config, in_order=True),
            beside=beside,
        )
        return
    # Most regions have one of the first reading.
    yield from build(region, codes, beside=beside)
    rows = sum(each.part is TilePart.ROW for each in region.inputs.values())
    if len(codes) - PHASES - rows > config.pcu_count:
        # A program saves at most one for each of its phases, which joins another one or keeps a
        # column, and a pair of vectors saves one.
        return
    for each in _other_readings(region, codes, config, in_order=False):
        yield from build(each.region, each.codes)


def _other_readings(
    region: Region, codes: tuple[LaneCode, ...], config: ChipConfig, *, in_order: bool
) -> list[Reading]:
    """Other ways to read a region with rows on lanes than by its lane programs."""
    others = []
    if region.reduces and (halves := _of_lower_halves(region, codes, config)):
        others = [Reading(*halves)]
    if sum(each.part is TilePart.ROW for each in region.inputs.values()) > 1:
        pairs = _codes(region, config, 0, phases=PHASES if region.whole else 1, pairs=True)
        others += [Reading(region, pairs)] if pairs != codes else []
    others += [Reading(region, each) for each in _kept_codes(region, config, in_order=in_order)]
    late = sent_late(codes[0])
    others += [Reading(region, (late, *codes[1:]))] if late else []
    others += _joined_readings([Reading(region, codes), *others])
    # One element per row that is taken again for every column is a whole vector of bf16.
    return [
        each
        for each in others
        if not any(mixes_halves(phase.phase for phase in code.phases) for code in each.codes)
    ]


def _in_blocks(
    region: Region,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    *,
    in_order: bool,
    alone: bool,
) -> Iterator[Pipeline | Unfit]:
    """Pipelines of blocks, in which vectors come again beside the tiles.

    If they are not alone, what they cannot compute is left to the others.
    """
    try:
        codes = _codes(region, config, 1, phases=1)
    except ProgramError:
        if alone:
            raise
        return
    if again := _taken_again(region, codes):
        yield _used_again(again)
    else:
        yield from _joined_pipelines(region, codes, arrays, config, in_order=in_order)


def _kept_codes(
    region: Region, config: ChipConfig, *, in_order: bool
) -> Iterator[tuple[LaneCode, ...]]:
    """Lane programs that keep columns of one element per row as statistics, as many as they can.

    If the best need not come first, many columns are tried one after another, not in all subsets.
    """
    columns = [
        name
        for name, each in region.inputs.items()
        if each.part is TilePart.COLUMN and each.type.format is not int8
    ]
    if region.columns == 1:
        return
    if not in_order and len(columns) > _SUBSETS:
        grown: tuple[str, ...] = ()
        best: list[tuple[LaneCode, ...]] = []
        for column in columns:
            if more := _keeping(region, config, (*grown, column)):
                grown, best = (*grown, column), more
        yield from best
        return
    for count in range(len(columns), 0, -1):
        found = []
        for kept in itertools.combinations(columns, count):
            found += [each for each in _keeping(region, config, kept) if each not in found]
        if found:
            yield from found
            return


def _keeping(
    region: Region, config: ChipConfig, kept: tuple[str, ...]
) -> list[tuple[LaneCode, ...]]:
    """Lane programs of which the first one alone takes some columns, and keeps them."""
    found = []
    rows = sum(each.part is TilePart.ROW for each in region.inputs.values())
    for pairs in (False, True) if rows > 1 else (False,):
        with contextlib.suppress(ProgramError):
            found.append(_codes(region, config, 0, kept=kept, pairs=pairs))
    return found


def _joined_readings(readings: Sequence[Reading]) -> list[Reading]:
    """Readings with joined phases, but for those with more work in as many PCUs of a chain."""
    found: list[Reading] = []
    for reading in readings:
        for codes in joined_firsts(reading.codes, reading.region.outputs):
            work = codes[0].packet_phases
            if not any(
                each.region is reading.region
                and len(each.codes) <= len(codes)
                and each.codes[0].packet_phases <= work
                for each in (*readings, *found)
            ):
                found.append(dataclasses.replace(reading, codes=codes))
    return found


def _joined_pipelines(
    region: Region,
    codes: tuple[LaneCode, ...],
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    *,
    in_order: bool,
) -> Iterator[Pipeline | Unfit]:
    """Pipelines of element math: of the chain or of one with joined phases, by the estimate."""
    best: list[Pipeline] = []
    others: list[Iterator[Pipeline | Unfit]] = []
    for chain in balanced_codes(codes, region.outputs, config):
        candidates = element_pipelines(region, chain, arrays, config, in_order=in_order)
        if not in_order:
            yield from candidates
            continue
        for each in candidates:
            if isinstance(each, Unfit):
                yield each
            else:
                best.append(each)
                others.append(candidates)
                break
    yield from sorted(best, key=lambda each: each.cycles)
    yield from itertools.chain.from_iterable(others)


def _taken_again(region: Region, codes: tuple[LaneCode, ...]) -> list[str]:
    """Stored values that a lane program takes."""
    phases = [each for code in codes for each in code.phases]
    taken = {value for each in phases for value in (each.source, each.auxiliary)}
    return [value for value in region.outputs if value in taken]


def _used_again(values: list[str]) -> Unfit:
    return unfit(f"Stored value `{values[0]}`", "be used by nothing else in a chain", len(values))


def _of_lower_halves(
    region: Region, codes: tuple[LaneCode, ...], config: ChipConfig
) -> tuple[Region, tuple[LaneCode, ...]] | None:
    """Region and lane programs that take bf16 from lower halves of vectors, if it may be faster.

    A group then has half as many rows, so more PCUs have one, or the last one takes less time.
    """
    wide, half = region.widened(), config.width_bits // 32
    chains = most_chains(config, len(codes), MERGED)

    def cycles(rows: int) -> float:
        """Cycles per column of the busiest PCU, for groups of so many rows."""
        return ceil_div(ceil_div(region.rows, rows), chains) * max(rows / config.pcu.lanes, CHANGE)

    if wide is None or cycles(half) >= cycles(2 * half):
        return None
    try:
        found = _codes(wide, config, 0)
    except ProgramError:
        return None
    changed = {name for name, each in wide.inputs.items() if each != region.inputs[name]}
    found = tuple(lower_halves(each, changed) for each in found)
    return None if _taken_again(wide, found) else (wide, found)


def _codes(
    region: Region,
    config: ChipConfig,
    lane_axis: int,
    *,
    phases: int = PHASES,
    pairs: bool = False,
    kept: Sequence[str] = (),
) -> tuple[LaneCode, ...]:
    types = {name: each.type for name, each in region.inputs.items()}
    formats = {value: region.formats[tensor] for value, tensor in region.outputs.items()}
    bits = config.pcu.function_bits
    # Columns on lanes take one element per row for every vector, too, if it has one for each.
    repeated = (
        (TilePart.COLUMN,) if not lane_axis else (TilePart.ROW,) if region.whole else _VECTORS
    )
    whole = bool(region.whole or kept)
    return lane_codes(
        region.nodes,
        types,
        formats,
        lane_axis=lane_axis,
        function_bits=bits,
        repeated=[
            name
            for name, each in region.inputs.items()
            if each.part in repeated and name not in kept
        ],
        kept=kept,
        returns=not whole,
        numbered=whole,
        phases=phases,
        pairs=pairs,
    )
