"""Boxes of rows of a tensor that are longer than a dimension of a box: in pieces."""

from __future__ import annotations

import math

from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX, Descriptor, ElementFormat
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit
from sw.stages.stage_graph import argument_of

__all__ = [
    "aligned_elements",
    "chunks_of",
    "divisor",
    "even_share",
    "pieces_of",
    "rows_of",
    "vector_of",
    "whole_pieces_of",
]

#: A piece of a row is no shorter than this part of a box.
_SHORTEST = 8


def chunks_of(columns: int, form: Format, vector: int) -> int:
    """Vectors of a row in a slot: those of all its pieces, if it is longer than a box."""
    chunks = ceil_div(columns, vector)
    if chunks * vector <= MAX_BOX:
        return chunks
    return math.prod(pieces_of(columns, form, vector)) // vector


def divisor(number: int, most: int) -> int:
    """Greatest divisor up to a limit."""
    return max(each for each in range(1, most + 1) if not number % each)


def even_share(number: int, most: int) -> int:
    """Greatest of the fewest shares of a number up to a limit, about as large as one another."""
    return ceil_div(number, ceil_div(number, most))


def aligned_elements(form: Format, vector: int) -> int:
    """Elements of the fewest vectors whose bytes are a multiple of `BASE_ALIGNMENT`."""
    return max(vector, BASE_ALIGNMENT * 8 // form.bits)


def pieces_of(columns: int, form: Format, vector: int) -> tuple[int, int]:
    """Length and number of the pieces of a row: equal ones, aligned, at most a box long.

    Of lengths that are no less than an eighth of a box, the longest that pads a row the least.
    """
    unit = aligned_elements(form, vector)
    units, most = ceil_div(columns, unit), MAX_BOX // unit
    least = ceil_div(most, _SHORTEST)
    length = min(range(least, most + 1), key=lambda each: (-units % each, -each)) * unit
    return _require_box(length, ceil_div(columns, length))


def whole_pieces_of(columns: int, form: Format, vector: int) -> tuple[int, int]:
    """Length and number of pieces that make up a row of whole aligned pieces."""
    unit = aligned_elements(form, vector)
    length = divisor(columns // unit, MAX_BOX // unit) * unit
    return _require_box(length, columns // length)


def _require_box(length: int, count: int) -> tuple[int, int]:
    if count > MAX_BOX:
        rule = f"at most {MAX_BOX} pieces"
        raise Unfit(f"Row of a box must have {rule}, not {count}", value=count, rule=rule)
    return length, count


def rows_of(
    arrays: tuple[ArraySpec, ...], name: str, pieces: tuple[int, int], rows: int, row: int
) -> tuple[Descriptor, int]:
    """Boxes of rows longer than a box can be: a row is a number of pieces of some length.

    The last piece ends with the row.
    """
    number, array = argument_of(arrays, name)
    (length, count), (height, columns) = pieces, array.matrix
    descriptor = Descriptor(
        base=row * array.pitch,
        format=ElementFormat.of(array.format),
        dims=(length, count, height - row),
        strides=(length * array.format.bits // 8, array.pitch),
        box=(length, count, rows),
        shortfall=max(0, length * count - columns),
    )
    return descriptor, number


def vector_of(
    arrays: tuple[ArraySpec, ...],
    name: str,
    columns: int,
    vector: int,
    times: int,
    piece: int | None = None,
) -> tuple[Descriptor, int]:
    """One box of a vector in memory or of a piece of it, several times in a row, and its argument.

    Parameters
    ----------
    arrays : tuple of ArraySpec
    name : str
    columns, vector : int
        Elements in memory, and those of a vector of a link.
    times : int
    piece : int
        Elements of a box, at most `MAX_BOX`; without it the box has all.
    """
    number, array = argument_of(arrays, name)
    chunks = chunks_of(columns, array.format, vector)
    dims: tuple[int, ...] = (columns,)
    strides: tuple[int, ...] = ()
    box: tuple[int, ...] = (chunks * vector if piece is None else piece,)
    shortfall = 0
    if piece is None and columns > MAX_BOX:
        dims = box = pieces_of(columns, array.format, vector)
        strides = (dims[0] * array.format.bits // 8,)
        shortfall = math.prod(dims) - columns
    if times > 1:
        dims, box, strides = (*dims, times), (*box, times), (*strides, 0)
    descriptor = Descriptor(
        base=0,
        format=ElementFormat.of(array.format),
        dims=dims,
        strides=strides,
        box=box,
        shortfall=shortfall,
    )
    return descriptor, number
