"""Boxes of a tensor whose rows or columns lie in segments of memory, and the loops over them.

The number of such a line has a digit for its place in a segment, and one for each loop over
segments. Each digit is a dimension of the descriptor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hw.arch.boxes.issuer_program import ISSUER_LOOPS
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_RANK, Descriptor
from hw.arch.loops import BoxLoop
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit, unfit

__all__ = ["are_in_segments", "digits_of", "in_segments", "require_aligned", "split_loops"]


def are_in_segments(array: ArraySpec, rows: int) -> bool:
    """Whether boxes of so many rows, one behind another, are boxes of segments, if it has any."""
    if array.segments is None:
        return True
    try:
        _digits_of(rows, digits_of(array))
    except Unfit:
        return False
    return True


def in_segments(
    arrays: tuple[ArraySpec, ...],
    boxes: tuple[Descriptor, int],
    loops: Sequence[BoxLoop],
    first: int,
) -> tuple[tuple[Descriptor, int], list[BoxLoop]]:
    """Boxes and loops as they are, or with dimensions of segments in place of that of their axis.

    Parameters
    ----------
    arrays : tuple of ArraySpec
        Arguments of the launch.
    boxes : tuple of (Descriptor, int)
        Boxes from a row or column on, and the argument. Rows are the last dimension, columns the
        first.
    loops : sequence of BoxLoop
    first : int
        The row or column at which they begin, whichever lies in segments.

    Raises
    ------
    Unfit
        If a box ends in another segment than it begins, or there are too many loops or dimensions.
    """
    descriptor, number = boxes
    array = arrays[number]
    if array.segments is None:
        return boxes, [*loops]
    axis = 0 if array.segments.axis else descriptor.rank - 1
    step = array.format.bits // 8 if array.segments.axis else array.pitch
    sizes = digits_of(array)
    outer = [stride for _, stride in reversed(array.segments.loops)]
    places = [axis, *range(descriptor.rank, descriptor.rank + len(outer))]
    # Other loops may have a slope in the index of one before them.
    if not any(each.slope for each in loops):
        loops = [each for each in loops if each.count > 1] or loops[:1]
    along = [each for each in loops if each.dimension == axis and each.count > 1]
    if any(each.slope for each in along):
        raise unfit("Slopes of boxes in segments", "be 0", max(each.slope for each in along))
    steps = [(each.count, each.step) for each in along]
    box, begin, split = _divided(sizes, descriptor.box[axis], first, steps)
    if axis == 0 and any(count > 1 for count in box[1:]):
        raise unfit("Columns of a box in segments", f"be at most {sizes[0]}", descriptor.box[0])
    digits = {
        id(each): [BoxLoop(count, places[digit], step) for digit, count, step in parts]
        for each, parts in zip(along, split, strict=True)
    }
    found = [new for each in loops for new in digits.get(id(each), [each])]
    if descriptor.rank + len(outer) > MAX_RANK:
        rank = descriptor.rank + len(outer)
        raise unfit("Dimensions of boxes in segments", f"be at most {MAX_RANK}", rank)
    if len(found) > ISSUER_LOOPS:
        raise unfit("Loops over boxes in segments", f"be at most {ISSUER_LOOPS}", len(found))
    require_aligned(array, begin[0] if axis == 0 else 0)
    offset = sum(digit * stride for digit, stride in zip(begin, (step, *outer), strict=True))
    dims, counts = [*descriptor.dims], [*descriptor.box]
    dims[axis], counts[axis] = sizes[0] - begin[0], box[0]
    between = (size - digit for size, digit in zip(sizes[1:], begin[1:], strict=True))
    divided = dataclasses.replace(
        descriptor,
        base=descriptor.base - first * step + offset,
        dims=(*dims, *between),
        strides=(*descriptor.strides, *outer),
        box=(*counts, *box[1:]),
        element_strides=(*descriptor.element_strides, *[1] * len(outer)),
    )
    return (divided, number), found


def require_aligned(array: ArraySpec, column: int) -> None:
    """Refuse boxes that begin at a column whose address memory does not align.

    Raises
    ------
    Unfit
    """
    before = column * array.format.bits // 8
    if before % BASE_ALIGNMENT:
        raise unfit("Bytes before a column", f"be a multiple of {BASE_ALIGNMENT}", before)


def split_loops(
    sizes: Sequence[int], box: int, first: int, loops: Sequence[tuple[int, int]]
) -> int:
    """Number of loops over digits that loops along an axis in segments are.

    Parameters
    ----------
    sizes : sequence of int
        Its `digits_of`.
    box, first : int
        Elements of a box, and the place of the first one.
    loops : sequence of (int, int)
        Counts and steps.

    Raises
    ------
    Unfit
        If a box ends in another segment than it begins.
    """
    *_, split = _divided(sizes, box, first, [each for each in loops if each[0] > 1])
    return sum(map(len, split))


def digits_of(array: ArraySpec) -> list[int]:
    """Rows or columns of a segment, and the counts of the loops over segments, inner first."""
    assert array.segments is not None
    counts = [count for count, _ in reversed(array.segments.loops)]
    return [array.matrix[array.segments.axis] // array.segments.count, *counts]


def _divided(
    sizes: Sequence[int], box: int, first: int, loops: Sequence[tuple[int, int]]
) -> tuple[list[int], list[int], list[list[tuple[int, int, int]]]]:
    """Digits of a box and of the first place, and each loop as loops over digits.

    A loop is a count and a step; one over a digit has the digit's number before them.
    """
    counts, begin, rest = _digits_of(box, sizes), [], first
    for size in sizes[:-1]:
        rest, digit = divmod(rest, size)
        begin.append(digit)
    begin.append(rest)
    split = [_split(*each, sizes) for each in loops]
    for number, (size, count, digit) in enumerate(zip(sizes[:-1], counts, begin)):
        steps = (each[1:] for loop in split for each in loop if each[0] == number)
        last = digit + count + sum((times - 1) * step for times, step in steps)
        if last > size:
            raise unfit("Last row or column of a box in a segment", f"be at most {size}", last)
    return counts, begin, split


def _digits_of(count: int, sizes: Sequence[int]) -> list[int]:
    """Rows or columns of a box by digits: whole segments, or an even part of one."""
    found = []
    for size in sizes[:-1]:
        if count % size and size % count:
            rule = f"be a multiple or a part of {size}, as segments have"
            raise unfit("Rows or columns of a box", rule, count)
        found.append(min(count, size))
        count = max(1, count // size)
    return [*found, count]


def _split(
    count: int, step: int, sizes: Sequence[int], number: int = 0
) -> list[tuple[int, int, int]]:
    """A loop as loops over digits from a number on, those of outer ones first."""
    size, *outer = sizes
    if not outer:
        return [(number, count, step)]
    if step % size == 0:
        return _split(count, step // size, outer, number + 1)
    own = size // step
    if size % step == 0 and count <= own:
        return [(number, count, step)]
    if size % step:
        raise unfit("Steps of boxes", f"divide {size}, the size of a segment, evenly", step)
    if count % own:
        raise unfit("Boxes of a loop", f"be a multiple of {own}, those of a segment", count)
    return [*_split(count // own, 1, outer, number + 1), (number, own, step)]
