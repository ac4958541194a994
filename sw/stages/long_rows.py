"""Boxes of rows of a tensor that are longer than a dimension of a box: in equal pieces."""

from __future__ import annotations

from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX, Descriptor, ElementFormat
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit
from sw.stages.stage_graph import argument_of

__all__ = ["pieces_of", "rows_of", "vector_of"]


def pieces_of(columns: int, vector: int) -> tuple[int, int]:
    """Length and number of equal pieces of whole vectors, each at most a box long."""
    chunks = ceil_div(columns, vector)
    size = max(each for each in range(1, MAX_BOX // vector + 1) if not chunks % each)
    if chunks // size > MAX_BOX:
        rule = f"at most {MAX_BOX} pieces"
        count = chunks // size
        raise Unfit(f"Row of a box must have {rule}, not {count}", value=count, rule=rule)
    return size * vector, chunks // size


def _stride(length: int, array: ArraySpec) -> int:
    """Bytes from a piece of a row to the next one."""
    stride = length * array.format.bits // 8
    if stride % BASE_ALIGNMENT:
        rule = f"a multiple of {BASE_ALIGNMENT} bytes"
        raise Unfit(
            f"Pieces of a row of `{array.name}` must be {rule}, not {stride}",
            value=stride,
            rule=rule,
        )
    return stride


def rows_of(
    arrays: tuple[ArraySpec, ...], name: str, pieces: tuple[int, int], rows: int, row: int
) -> tuple[Descriptor, int]:
    """Boxes of rows longer than a box can be: a row is a number of pieces of some length."""
    number, array = argument_of(arrays, name)
    length, count = pieces
    descriptor = Descriptor(
        base=row * array.pitch,
        format=ElementFormat.of(array.format),
        dims=(length, count, array.shape[0] - row),
        strides=(_stride(length, array), array.pitch),
        box=(length, count, rows),
    )
    return descriptor, number


def vector_of(
    arrays: tuple[ArraySpec, ...], name: str, columns: int, vector: int, times: int
) -> tuple[Descriptor, int]:
    """One box of a vector in memory, several times in a row, and its launch argument."""
    number, array = argument_of(arrays, name)
    chunks = ceil_div(columns, vector)
    dims: tuple[int, ...] = (columns,)
    strides: tuple[int, ...] = ()
    box: tuple[int, ...] = (chunks * vector,)
    if columns > MAX_BOX:
        dims = box = pieces_of(columns, vector)
        strides = (_stride(dims[0], array),)
    if times > 1:
        dims, box, strides = (*dims, times), (*box, times), (*strides, 0)
    form = ElementFormat.of(array.format)
    return Descriptor(base=0, format=form, dims=dims, strides=strides, box=box), number
