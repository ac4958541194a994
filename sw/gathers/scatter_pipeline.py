"""Pipelines that scatter rows: numbers pass a buffer to the AGCU that stores the rows they name."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

from hw.arch.agcu import INDEX_BITS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX, Descriptor
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.gathers.load_streams import require_load_streams
from sw.gathers.row_scatter import RowScatter
from sw.passes.field_limits import require_count
from sw.stages.grids import on_lines
from sw.stages.pipeline import Pipeline, PipelineParts, fitting
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
    require_load_streams("scatter", config)
    parts = PipelineParts(config)
    form = argument_of(arrays, scatter.table)[1].format
    vector = parts.vector(form)
    require_count("rows", scatter.rows)
    # All blocks of columns but the first begin at an aligned address.
    unit = max(vector, BASE_ALIGNMENT * 8 // form.bits)
    wide = ceil_div(ceil_div(scatter.columns, lines), unit) * unit
    lines = ceil_div(scatter.columns, wide)
    for line in range(lines):
        first = line * wide
        pieces = _pieces(first, min(wide, scatter.columns - first), vector, unit)
        _add_numbers(parts, scatter, arrays, line, len(pieces))
        _add_rows(parts, scatter, arrays, line, pieces, form)
    return parts.done(f"{lines} lines of {scatter.rows} x {wide}", min(scatter.rows, MAX_BOX), wide)


@dataclasses.dataclass(frozen=True)
class _Piece:
    """Columns of a row that one box takes.

    Parameters
    ----------
    column : int
        The first one.
    wide, count : int
        Columns side by side in a box, and how many times as many follow in it.
    box : int
        Columns of the box: whole vectors.
    """

    column: int
    wide: int
    count: int
    box: int

    def boxes(
        self, arrays: tuple[ArraySpec, ...], name: str, rows: int, step: int
    ) -> tuple[Descriptor, int, tuple[BoxLoop, ...]]:
        """Descriptor and argument of its columns of a tensor, and a loop over rows."""
        descriptor, argument = boxes_of(arrays, name, (self.box, 1), column=self.column)
        high, pitch = descriptor.dims[1], descriptor.strides[0]
        size = argument_of(arrays, name)[1].format.bits // 8
        descriptor = dataclasses.replace(
            descriptor,
            dims=(self.wide, self.count, high),
            strides=(self.box * size if self.count > 1 else pitch, pitch),
            box=(self.box, self.count, 1),
            element_strides=(),
        )
        return descriptor, argument, (BoxLoop(rows, _ROW, step if rows > 1 else 0),)


#: Dimension of a piece's boxes along which rows follow one another.
_ROW = 2


def _pieces(first: int, columns: int, vector: int, unit: int) -> tuple[_Piece, ...]:
    """Pieces of a line's columns: as many whole boxes as it has in one, the rest in another."""
    side = ceil_div(ceil_div(columns, ceil_div(columns, MAX_BOX)), unit) * unit
    count, rest = divmod(columns, side)
    pieces = [_Piece(first, side, count, side)] if count else []
    if rest:
        pieces.append(_Piece(first + count * side, rest, 1, ceil_div(rest, vector) * vector))
    return tuple(pieces)


def _add_numbers(
    parts: PipelineParts,
    scatter: RowScatter,
    arrays: tuple[ArraySpec, ...],
    line: int,
    pieces: int,
) -> None:
    """Add the buffer of row numbers, which come again for each piece of a row.

    The store takes every vector of numbers: none may be left when it has stored the last row.
    """
    lanes, size = parts.config.width_bits // INDEX_BITS, INDEX_BITS // 8
    vectors = ceil_div(scatter.rows, lanes)
    walk = Walk(
        (loop(1, lanes),),
        launches=LoopProgram(pieces),
        windows=LoopProgram(vectors),
        last_level=Level.ADDRESS,
    )
    name = f"line{line}_numbers"
    hold = Hold(lanes * size, size, (walk,), (walk,))
    parts.hold(name, hold, wanted=_SLOTS, rate=1.0 / lanes, alignment=2, tokens=True)
    parts.load(
        f"{name}_load",
        line,
        boxes_of(arrays, scatter.numbers, (lanes, 1)),
        [BoxLoop(pieces, 1, 0), BoxLoop(vectors, 0, lanes if vectors > 1 else 0)],
        [Socket(name)],
    )


def _add_rows(
    parts: PipelineParts,
    scatter: RowScatter,
    arrays: tuple[ArraySpec, ...],
    line: int,
    pieces: tuple[_Piece, ...],
    form: Format,
) -> None:
    """Add the buffer of rows, a piece of one to a slot, and the store of those that are named."""
    assert isinstance(scatter.source, str)
    vector, element = parts.vector(form), form.bits // 8
    first, last = (each.box * each.count for each in (pieces[0], pieces[-1]))
    slope = (last - first) // vector
    steps = loop(first // vector, vector)
    if slope:
        steps = dataclasses.replace(steps, stride=vector, slope=slope, outer=Level.LAUNCHES)
    walk = Walk(
        (steps,),
        launches=LoopProgram(len(pieces)),
        windows=LoopProgram(scatter.rows),
        last_level=Level.ADDRESS,
    )
    name = f"line{line}_rows"
    hold = Hold(first * element, element, (walk,), (walk,))
    parts.hold(name, hold, wanted=_SLOTS, rate=1.0, alignment=2, tokens=True)
    source, *more = (each.boxes(arrays, scatter.source, scatter.rows, 1) for each in pieces)
    parts.load(f"{name}_load", line, source[:2], source[2], [Socket(name)], following=tuple(more))
    table, *more = (each.boxes(arrays, scatter.table, scatter.rows, 0) for each in pieces)
    parts.store(
        f"{name}_store",
        line,
        table[:2],
        table[2],
        [(Socket(name), 1)],
        index=_ROW,
        following=tuple(more),
    )
    named = [Socket(f"{name}_store", 1)]
    parts.join(f"{name}_named", [(Socket(f"line{line}_numbers"), 1)], named)
