"""Pipelines that gather rows: numbers pass a buffer to the AGCU that loads the rows they name."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from hw.arch.agcu import INDEX_BITS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.gathers.load_streams import require_load_streams
from sw.gathers.row_gather import RowGather
from sw.passes.field_limits import require_count
from sw.stages.grids import on_lines
from sw.stages.pipeline import Pipeline, PipelineParts, fitting
from sw.stages.stage_graph import Hold, Socket, Walk, argument_of, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["gather_pipelines"]

#: Slots that are wanted for rows, and for blocks of numbers.
_ROW_SLOTS, _NUMBER_SLOTS = 16, 2


def gather_pipelines(
    gather: RowGather, arrays: tuple[ArraySpec, ...], config: ChipConfig, name: str
) -> Iterator[Pipeline]:
    """Pipelines for a gather of rows, those with most AGCUs first.

    Parameters
    ----------
    gather : RowGather
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
    return fitting(on_lines(config, functools.partial(_lines, gather, arrays, config)), name)


def _lines(
    gather: RowGather, arrays: tuple[ArraySpec, ...], config: ChipConfig, lines: int
) -> Pipeline:
    """Pipeline in which as many AGCUs each gather every so many blocks of rows."""
    require_load_streams("gather", config)
    parts = PipelineParts(config)
    form = argument_of(arrays, gather.table)[1].format
    vector, element = parts.vector(form), form.bits // 8
    wide = min(MAX_BOX, ceil_div(gather.columns, vector) * vector)
    across = ceil_div(gather.columns, wide)
    # Numbers of a block are whole vectors: the next block begins with a new one.
    lanes = config.width_bits // INDEX_BITS
    most = MAX_BOX // lanes * lanes
    high = min(most, ceil_div(ceil_div(gather.rows, lines), lanes) * lanes)
    down = ceil_div(gather.rows, high)
    lines = min(lines, down)
    for line in range(lines):
        blocks = ceil_div(down - line, lines)
        count = blocks * high
        require_count("rows", count)
        require_count("blocks of columns", across)
        walk = Walk(
            (loop(high // lanes, lanes),),
            launches=LoopProgram(across),
            windows=LoopProgram(blocks),
            last_level=Level.ADDRESS,
        )
        size = INDEX_BITS // 8
        numbers, rows = f"line{line}_numbers", f"line{line}_rows"
        parts.hold(
            numbers,
            Hold(high * size, size, (walk,), (walk,)),
            wanted=_NUMBER_SLOTS,
            rate=1.0 / lanes,
            alignment=2,
            tokens=True,
        )
        step = high * lines if blocks > 1 else 0
        parts.load(
            f"{numbers}_load",
            line,
            boxes_of(arrays, gather.numbers, (high, 1), column=line * high),
            [BoxLoop(across, 1, 0), BoxLoop(blocks, 0, step)],
            [Socket(numbers)],
        )
        walk = Walk(
            (loop(wide // vector, vector),),
            launches=LoopProgram(across),
            windows=LoopProgram(count),
            last_level=Level.ADDRESS,
        )
        parts.hold(
            rows,
            Hold(wide * element, element, (walk,), (walk,)),
            wanted=_ROW_SLOTS,
            rate=1.0,
            alignment=2,
            tokens=True,
        )
        columns = BoxLoop(across, 0, wide if across > 1 else 0)
        parts.load(
            f"{rows}_load",
            line,
            boxes_of(arrays, gather.table, (wide, 1)),
            [columns, BoxLoop(count, 1, 0)],
            [Socket(rows)],
            index=1,
        )
        parts.join(f"{rows}_named", [(Socket(numbers), 1)], [Socket(f"{rows}_load")])
        parts.store(
            f"{rows}_store",
            line,
            boxes_of(arrays, gather.result, (wide, 1), line * high),
            [columns, BoxLoop(blocks, 1, step), BoxLoop(high, 1, 1)],
            [(Socket(rows), 1)],
        )
    summary = f"{lines} lines, {down} x {across} blocks of {high} x {wide}"
    return parts.done(summary, high, wide)
