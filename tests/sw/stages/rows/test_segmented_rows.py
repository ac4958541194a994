"""Boxes of rows in segments: each row of each box has the address of its segment."""

import itertools
import random

import pytest

from hw.arch.loops import BoxLoop
from hw.numeric.formats import bf16
from sw.array_spec import ArraySpec, Segments
from sw.passes.field_limits import Unfit
from sw.stages.segment_digits import are_in_segments, in_segments
from sw.stages.stage_graph import boxes_of


def boxes_at(loops, rank):
    """Coordinates of each box of a nest of loops."""
    for indices in itertools.product(*(range(each.count) for each in loops)):
        begin = [0] * rank
        for index, each in zip(indices, loops, strict=True):
            begin[each.dimension] += index * each.step
        yield begin


def addresses(descriptor, loops):
    """Address of each row of all boxes, in their order; None for rows beyond the tensor."""
    axes = range(1, descriptor.rank)
    for begin in boxes_at(loops, descriptor.rank):
        spans = [range(begin[axis], begin[axis] + descriptor.box[axis]) for axis in axes]
        for place in itertools.product(*reversed(spans)):
            at = place[::-1]
            inside = all(each < descriptor.dims[axis] for axis, each in zip(axes, at, strict=True))
            steps = zip(at, descriptor.strides, strict=True)
            yield descriptor.base + sum(each * step for each, step in steps) if inside else None


def address_of(array, row):
    """Address of a row of an array in segments."""
    if row >= array.matrix[0]:
        return None
    segment, inside = divmod(row, array.matrix[0] // array.segments.count)
    address = inside * array.pitch
    for count, stride in reversed(array.segments.loops):
        segment, digit = divmod(segment, count)
        address += digit * stride
    return address


def drawn(draw):
    """An array of one or two loops over segments, and boxes of its rows."""
    size, counts = (
        draw.choice([1, 2, 4, 8, 16, 32]),
        draw.choices([2, 3, 4, 8], k=draw.randint(1, 2)),
    )
    rows = size
    for each in counts:
        rows *= each
    strides = [draw.choice([0, 16, 4096, 80]) for _ in counts]
    array = ArraySpec(
        "g",
        (rows, 24),
        bf16,
        row_pitch=draw.choice([0, 48, 64]),
        segments=Segments(0, tuple(zip(counts, strides, strict=True))),
    )
    box = draw.choice([1, 2, 4, 8, 16])
    across = draw.choice([1, 2, 3, 4, 8])
    blocks = -(-rows // (box * across))
    loops = [BoxLoop(blocks, 1, box * across), BoxLoop(1), BoxLoop(across, 1, box)]
    row = box * draw.randrange(3)
    return array, box, loops, min(row, rows - 1)


def test_addresses_are_those_of_rows(seed):
    draw = random.Random(seed)
    fit = 0
    for _ in range(400):
        array, box, loops, row = drawn(draw)
        boxes = boxes_of((array,), "g", (24, box), row)
        try:
            (descriptor, number), found = in_segments((array,), boxes, loops, row)
        except Unfit:
            continue
        fit += 1
        assert number == 0 and are_in_segments(array, box)
        numbers = [row + begin + each for _, begin in boxes_at(loops, 2) for each in range(box)]
        expected = [address_of(array, each) for each in numbers]
        assert [*addresses(descriptor, found)] == expected
    assert fit > 100


@pytest.mark.parametrize(
    "size, box, loops, message",
    [
        (12, 16, [BoxLoop(1)], "multiple or a part of 12, as segments have, not 16"),
        (32, 16, [BoxLoop(3, 1, 48)], "divide 32, the size of a segment, evenly, not 48"),
        (32, 16, [BoxLoop(3, 1, 16)], "multiple of 2, those of a segment, not 3"),
        (32, 16, [BoxLoop(2, 1, 16), BoxLoop(2, 1, 16)], "at most 32, not 48"),
    ],
)
def test_boxes_that_end_in_another_segment_are_refused(size, box, loops, message):
    array = ArraySpec("g", (4 * size, 24), bf16, segments=Segments(0, ((4, 0),)))
    with pytest.raises(Unfit, match=message):
        in_segments((array,), boxes_of((array,), "g", (24, box)), loops, 0)


def test_rows_one_behind_another_stay_as_they_are():
    array = ArraySpec("g", (64, 24), bf16)
    boxes, loops = boxes_of((array,), "g", (24, 16)), [BoxLoop(4, 1, 16)]
    assert in_segments((array,), boxes, loops, 0) == (boxes, loops)
    assert are_in_segments(array, 7)
