"""Buffers that give lanes columns of one element per row, once for each packet of whole rows.

The lanes keep them as statistics. All chains of a line have one buffer, whose packets they take in
turn: those of one chain are the vectors of its group of rows, of one column or of two.

In memory each element begins a row, so it is loaded as a vector without others. Vectors become the
columns of a block, and the first row of the block is read: it has the elements of all of them.
"""

from __future__ import annotations

from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuInput
from hw.arch.words.pmu_word import Access, Level
from sw.passes.field_limits import unfit
from sw.stages.pipeline import pcu_name
from sw.stages.rows.row_frame import RowFrame
from sw.stages.segment_digits import in_segments
from sw.stages.stage_graph import Hold, Socket, Walk, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["add_kept"]


def add_kept(frame: RowFrame, line: int) -> None:
    """Add buffer, loads and stream of the columns that the first programs of a line keep.

    Raises
    ------
    Unfit
        If they do not fit.
    """
    parts, values = frame.parts, frame.kept
    form = frame.form_of(values[0])
    vector, element, halves = parts.vector(form), form.bits // 8, frame.halves(form)
    band, groups = vector**2, frame.copies * halves
    rows, first = frame.group * frame.copies, line * frame.group * frame.copies
    if rows > MAX_BOX:
        raise unfit("Rows of a box of kept columns", f"be at most {MAX_BOX}", rows)
    frame.require_first_row(first)
    writes = tuple(
        Walk(
            (loop(groups, band), loop(min(vector, frame.group), 1)),
            offset=number * groups * band,
            access=Access.COLUMN,
            windows=LoopProgram(frame.blocks),
        )
        for number in range(len(values))
    )
    taken = frame.statistic_vectors(form)
    read = Walk(
        (
            loop(frame.copies, halves * band),
            loop(len(values), groups * band),
            loop(taken, band if halves > 1 else 0),
        ),
        windows=LoopProgram(frame.blocks),
        last_level=Level.ADDRESS + 1,
    )
    name = f"line{line}_{'_'.join(values)}"
    hold = Hold(len(values) * groups * band * element, element, writes, (read,))
    parts.hold(name, hold, wanted=2, rate=0.2, alignment=vector, tokens=True)
    for number, value in enumerate(values):
        tensor = boxes_of(frame.arrays, frame.region.inputs[value].tensor, (vector, rows), first)
        step = rows * frame.lines if frame.blocks > 1 else 0
        loops = [BoxLoop(frame.blocks, 1, step)]
        boxes = in_segments(frame.arrays, tensor, loops, first)
        parts.load(f"{name}_load{number or ''}", line, *boxes, [Socket(name, number)])
    takers = [Socket(pcu_name(line, 0, copy), PcuInput.AUXILIARY) for copy in range(frame.copies)]
    parts.join(f"{name}_elements", [(Socket(name), 1)], takers)
