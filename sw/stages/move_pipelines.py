"""Pipelines without a PCU: blocks of a tensor are copied, or transposed by a buffer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import Access, Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.ir import nodes as ir
from sw.passes.field_limits import Unfit, require_count
from sw.stages.bus_cycles import bus_cycles
from sw.stages.grids import on_lines
from sw.stages.pipeline import Pipeline, PipelineParts
from sw.stages.region import Region, TilePart
from sw.stages.segment_digits import are_in_segments, in_segments
from sw.stages.stage_graph import Hold, Socket, Walk, argument_of, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["move_pipelines", "moves"]

#: Blocks of a line, so that loads and stores overlap, and least elements of one.
_BLOCKS, _LEAST_BLOCK = 16, 1024
#: Operations between load and store, by the part of the region that is loaded.
_MOVES: Mapping[TilePart, tuple[type[ir.Node], ...]] = {
    TilePart.BLOCK: (ir.Buffer,),
    TilePart.TURNED: (ir.Buffer, ir.Transpose),
}


def moves(region: Region) -> bool:
    """Whether the only result is a tensor in the same format, as it is or transposed."""
    (source, *others) = region.inputs.values()
    return (
        not others
        and len(region.outputs) == 1
        and source.part in _MOVES
        and all(isinstance(node, _MOVES[source.part]) for node in region.nodes)
        and all(region.formats[each] == source.type.format for each in region.outputs.values())
    )


def move_pipelines(
    region: Region, arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> Iterator[Pipeline | Unfit]:
    """Pipelines for a result that is a tensor, those with most AGCUs first.

    Parameters
    ----------
    region : Region
        One that `moves`.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig

    Returns
    -------
    iterator of Pipeline or Unfit
        Why a choice does not fit, in its place.
    """
    (source,) = region.inputs.values()
    build = _turn if source.part is TilePart.TURNED else _copy

    def estimated(lines: int) -> Pipeline:
        whole = build(region, arrays, config, lines)
        return dataclasses.replace(whole, cycles=bus_cycles(whole.graph, config))

    return on_lines(config, estimated)


def _copy(
    region: Region, arrays: tuple[ArraySpec, ...], config: ChipConfig, lines: int
) -> Pipeline:
    """Pipeline in which as many AGCUs each copy every so many rows of blocks."""
    ((value, source),) = region.inputs.items()
    (result,) = region.outputs.values()
    parts = PipelineParts(config)
    form = source.type.format
    vector, element = parts.vector(form), form.bits // 8
    wide = min(MAX_BOX, ceil_div(region.columns, vector) * vector)
    room = config.pmu.capacity_bytes // 4 // (wide * element)
    share = max(ceil_div(_LEAST_BLOCK, wide), ceil_div(region.rows, lines * _BLOCKS))
    high = max(1, min(MAX_BOX, ceil_div(region.rows, lines), room, share))
    places = [argument_of(arrays, each)[1] for each in (source.tensor, result)]
    heights = range(high, 0, -1)
    high = next(high for high in heights if all(are_in_segments(each, high) for each in places))
    down, across = ceil_div(region.rows, high), ceil_div(region.columns, wide)
    require_count("blocks of rows", down)
    require_count("blocks of columns", across)
    lines = min(lines, down)
    for line in range(lines):
        blocks = ceil_div(down - line, lines)
        walk = Walk(
            (loop(high * wide // vector, vector),),
            launches=LoopProgram(blocks),
            windows=LoopProgram(across),
            last_level=Level.ADDRESS,
        )
        name = f"line{line}_{value}"
        hold = Hold(high * wide * element, element, (walk,), (walk,))
        parts.hold(name, hold, wanted=4, rate=1.0, alignment=2, tokens=True)
        loops = [
            BoxLoop(blocks, 1, high * lines if blocks > 1 else 0),
            BoxLoop(across, 0, wide if across > 1 else 0),
        ]
        box, row = (wide, high), line * high
        loads = in_segments(arrays, boxes_of(arrays, source.tensor, box, row), loops, row)
        parts.load(f"{name}_load", line, *loads, [Socket(name)])
        stores = in_segments(arrays, boxes_of(arrays, result, box, row), loops, row)
        parts.store(f"{name}_store", line, *stores, [(Socket(name), 1)])
    summary = f"{lines} buffers, {down} x {across} blocks of {high} x {wide}"
    return parts.done(summary, high, wide)


def _turn(
    region: Region, arrays: tuple[ArraySpec, ...], config: ChipConfig, lines: int
) -> Pipeline:
    """Pipeline in which as many AGCUs each turn every so many columns of blocks of the result."""
    ((value, source),) = region.inputs.items()
    (result,) = region.outputs.values()
    parts = PipelineParts(config)
    form = source.type.format
    vector, element = parts.vector(form), form.bits // 8
    # A block of the tensor has ``high`` rows, the result's columns, and ``wide`` columns.
    room = config.pmu.capacity_bytes // element // 2
    most = max(vector, min(MAX_BOX, 4 * vector) // vector * vector)
    while most > vector and most * most > room:
        most -= vector
    high = min(most, ceil_div(region.columns, vector) * vector)
    wide = min(most, ceil_div(region.rows, vector) * vector)
    down, across = ceil_div(region.columns, high), ceil_div(region.rows, wide)
    require_count("blocks of rows", down)
    require_count("blocks of columns", across)
    lines = min(lines, down)
    band = wide * vector
    for line in range(lines):
        blocks = ceil_div(down - line, lines)
        launches, windows = LoopProgram(blocks), LoopProgram(across)
        write = Walk(
            (
                LoopProgram(high // vector, stride=band if high > vector else 0),
                LoopProgram(vector, stride=vector),
                LoopProgram(wide // vector, stride=vector**2 if wide > vector else 0),
            ),
            launches=launches,
            windows=windows,
        )
        read = Walk(
            (
                LoopProgram(wide // vector, stride=vector**2 if wide > vector else 0),
                LoopProgram(vector, stride=1),
                LoopProgram(high // vector, stride=band if high > vector else 0),
            ),
            access=Access.COLUMN,
            launches=launches,
            windows=windows,
            last_level=Level.ADDRESS,
        )
        name = f"line{line}_{value}"
        hold = Hold(high * wide * element, element, (write,), (read,))
        parts.hold(name, hold, wanted=4, rate=1.0, alignment=vector, tokens=True)
        step = high * lines if blocks > 1 else 0
        stride = wide if across > 1 else 0
        parts.load(
            f"{name}_load",
            line,
            boxes_of(arrays, source.tensor, (wide, high), line * high),
            [BoxLoop(blocks, 1, step), BoxLoop(across, 0, stride)],
            [Socket(name)],
        )
        parts.store(
            f"{name}_store",
            line,
            boxes_of(arrays, result, (high, wide), column=line * high),
            [BoxLoop(blocks, 0, step), BoxLoop(across, 1, stride)],
            [(Socket(name), 1)],
        )
    return parts.done(
        f"{lines} buffers, {down} x {across} blocks of {high} x {wide}",
        wide,
        high,
    )
