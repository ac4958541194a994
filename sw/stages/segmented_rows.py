"""Boxes of rows of a tensor whose rows lie in segments of memory, and the loops over them.

The number of a row has a digit for its place in a segment, and one for each loop over segments.
Each digit is a dimension of the descriptor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hw.arch.boxes.issuer_program import ISSUER_LOOPS
from hw.arch.descriptor import MAX_RANK, Descriptor
from hw.arch.loops import BoxLoop
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit, unfit

__all__ = ["are_in_segments", "in_segments"]


def are_in_segments(array: ArraySpec, rows: int) -> bool:
    """Whether boxes of so many rows, one behind another, are boxes of segments, if it has any."""
    if array.segments is None:
        return True
    try:
        _digits_of(rows, _sizes(array))
    except Unfit:
        return False
    return True


def in_segments(
    arrays: tuple[ArraySpec, ...],
    boxes: tuple[Descriptor, int],
    loops: Sequence[BoxLoop],
    row: int,
) -> tuple[tuple[Descriptor, int], list[BoxLoop]]:
    """Boxes and loops as they are, or with dimensions of segments in place of that of rows.

    Parameters
    ----------
    arrays : tuple of ArraySpec
        Arguments of the launch.
    boxes : tuple of (Descriptor, int)
        Boxes of rows from a row on, which are the last dimension, and the argument.
    loops : sequence of BoxLoop
    row : int
        The row at which they begin.

    Raises
    ------
    Unfit
        If a box ends in another segment than it begins, or there are too many loops or dimensions.
    """
    descriptor, number = boxes
    array = arrays[number]
    if array.segments is None:
        return boxes, [*loops]
    sizes, axis = _sizes(array), descriptor.rank - 1
    strides = [array.pitch, *(stride for _, stride in reversed(array.segments.loops))]
    box, first, rest = _digits_of(descriptor.box[-1], sizes), [], row
    for size in sizes[:-1]:
        rest, digit = divmod(rest, size)
        first.append(digit)
    first.append(rest)
    found = []
    for each in loops:
        along = each.dimension == axis and each.count != 1
        found += _split(each, sizes) if along else [each]
    for number_of, size in enumerate(sizes[:-1]):
        steps = (each for each in found if each.dimension == axis + number_of)
        last = first[number_of] + box[number_of] + sum((e.count - 1) * e.step for e in steps)
        if last > size:
            raise unfit("Last row of a box in a segment", f"be at most {size}", last)
    if axis + len(sizes) > MAX_RANK:
        raise unfit("Dimensions of boxes in segments", f"be at most {MAX_RANK}", axis + len(sizes))
    if len(found) > ISSUER_LOOPS:
        raise unfit("Loops over boxes in segments", f"be at most {ISSUER_LOOPS}", len(found))
    begin = sum(digit * stride for digit, stride in zip(first, strides, strict=True))
    divided = dataclasses.replace(
        descriptor,
        base=descriptor.base - row * array.pitch + begin,
        dims=(*descriptor.dims[:-1], *(size - digit for size, digit in zip(sizes, first))),
        strides=(*descriptor.strides[:-1], *strides),
        box=(*descriptor.box[:-1], *box),
        element_strides=(*descriptor.element_strides[:-1], *[1] * len(sizes)),
    )
    return (divided, number), found


def _sizes(array: ArraySpec) -> list[int]:
    """Rows of a segment, and the counts of the loops over segments, inner before outer."""
    assert array.segments is not None
    counts = [count for count, _ in reversed(array.segments.loops)]
    return [array.matrix[0] // array.segments.count, *counts]


def _digits_of(rows: int, sizes: Sequence[int]) -> list[int]:
    """Rows of a box by digits: whole segments, or an even part of one."""
    found = []
    for size in sizes[:-1]:
        if rows % size and size % rows:
            rule = f"be a multiple or a part of {size}, as segments have"
            raise unfit("Rows of a box", rule, rows)
        found.append(min(rows, size))
        rows = max(1, rows // size)
    return [*found, rows]


def _split(loop: BoxLoop, sizes: Sequence[int]) -> list[BoxLoop]:
    """A loop over rows as loops over digits, those of outer loops over segments first."""
    size, *outer = sizes
    if not outer:
        return [loop]
    if loop.slope:
        raise unfit("Slopes of boxes in segments", "be 0", loop.slope)
    carried = dataclasses.replace(loop, dimension=loop.dimension + 1)
    if loop.step % size == 0:
        return _split(dataclasses.replace(carried, step=loop.step // size), outer)
    own = size // loop.step
    if size % loop.step == 0 and loop.count <= own:
        return [loop]
    if size % loop.step:
        raise unfit("Steps of boxes", f"divide {size}, the rows of a segment, evenly", loop.step)
    if loop.count % own:
        raise unfit("Boxes of a loop", f"be a multiple of {own}, those of a segment", loop.count)
    carried = dataclasses.replace(carried, count=loop.count // own, step=1)
    return [*_split(carried, outer), dataclasses.replace(loop, count=own)]
