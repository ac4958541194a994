"""Pipelines that scatter rows: numbers pass a buffer to the AGCU that stores the rows they name."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from hw.arch.agcu import AGCU_STREAMS, INDEX_BITS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.gathers.row_scatter import RowScatter
from sw.passes.field_limits import Unfit, require_count
from sw.stages.pipeline import Pipeline, PipelineParts, fitting, on_lines
from sw.stages.stage_graph import Hold, Socket, Walk, argument_of, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["scatter_pipelines"]

#: Slots that are wanted for rows, and for vectors of numbers.
_SLOTS = 16


def scatter_pipelines(
    scatter: RowScatter, arrays: tuple[ArraySpec, ...], config: ChipConfig, name: str
) -> Iterator[Pipeline]:
    """Pipelines for a scatter of rows, those with most AGCUs first.

    Parameters
    ----------
    scatter : RowScatter
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.

    Raises
    ------
    BadInputError
        If none fits.
    """
    return fitting(on_lines(config, functools.partial(_lines, scatter, arrays, config)), name)


def _lines(
    scatter: RowScatter, arrays: tuple[ArraySpec, ...], config: ChipConfig, lines: int
) -> Pipeline:
    """Pipeline in which as many AGCUs each scatter all rows of a block of columns."""
    streams = min(AGCU_STREAMS, config.token_tracks)
    if streams < 2:
        raise Unfit(
            f"A scatter needs 2 load streams of an AGCU, and those of the chip have {streams}",
            value=streams,
            rule="2 token tracks",
        )
    parts = PipelineParts(config)
    form = argument_of(arrays, scatter.table)[1].format
    vector, element = parts.vector(form), form.bits // 8
    most = lines * MAX_BOX
    if scatter.columns > most:
        raise Unfit(
            f"A scatter on {lines} AGCUs takes rows of at most {most} elements, "
            f"not {scatter.columns}",
            value=scatter.columns,
            rule=f"at most {most} columns",
        )
    assert isinstance(scatter.source, str)
    wide = ceil_div(ceil_div(scatter.columns, lines), vector) * vector
    lines = ceil_div(scatter.columns, wide)
    lanes = config.width_bits // INDEX_BITS
    # The store takes every vector of numbers: none may be left when it has stored the last row.
    vectors = ceil_div(scatter.rows, lanes)
    require_count("rows", scatter.rows)
    size = INDEX_BITS // 8
    for line in range(lines):
        numbers, rows = f"line{line}_numbers", f"line{line}_rows"
        column = line * wide
        walk = Walk((loop(1, lanes),), windows=LoopProgram(vectors), last_level=Level.ADDRESS)
        parts.hold(
            numbers,
            Hold(lanes * size, size, (walk,), (walk,)),
            wanted=_SLOTS,
            rate=1.0 / lanes,
            alignment=2,
            tokens=True,
        )
        parts.load(
            f"{numbers}_load",
            line,
            boxes_of(arrays, scatter.numbers, (lanes, 1)),
            [BoxLoop(vectors, 0, lanes if vectors > 1 else 0)],
            [Socket(numbers)],
        )
        walk = Walk(
            (loop(wide // vector, vector),),
            windows=LoopProgram(scatter.rows),
            last_level=Level.ADDRESS,
        )
        parts.hold(
            rows,
            Hold(wide * element, element, (walk,), (walk,)),
            wanted=_SLOTS,
            rate=1.0,
            alignment=2,
            tokens=True,
        )
        parts.load(
            f"{rows}_load",
            line,
            boxes_of(arrays, scatter.source, (wide, 1), column=column),
            [BoxLoop(scatter.rows, 1, 1)],
            [Socket(rows)],
        )
        parts.store(
            f"{rows}_store",
            line,
            boxes_of(arrays, scatter.table, (wide, 1), column=column),
            [BoxLoop(scatter.rows, 1, 0)],
            [(Socket(rows), 1)],
            index=1,
        )
        parts.join(f"{rows}_named", [(Socket(numbers), 1)], [Socket(f"{rows}_store", 1)])
    return parts.done(f"{lines} lines of {scatter.rows} x {wide}", min(scatter.rows, MAX_BOX), wide)
