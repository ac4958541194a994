"""Buffers and stores of results with rows on lanes: values of rows and columns, and statistics.

A lane program sends its results one after the other: a vector for each column, two or four columns
in a vector of shorter elements, and each statistic once. Vectors of all copies of its PCU are
merged in turn, and every buffer takes all of them: those of other results lie beside its own ones,
where nothing reads. A slot holds columns one after the other, and is read by rows of the result.
"""

from __future__ import annotations

import dataclasses
import itertools

from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuOutput
from hw.arch.words.pmu_word import ACCESS_OF_ROWS, Access, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.fabric.merges import MERGED
from sw.passes.field_limits import unfit
from sw.stages.pipeline import pcu_name
from sw.stages.rows.row_frame import RowFrame
from sw.stages.segment_digits import in_segments
from sw.stages.stage_graph import Hold, Socket, Walk, boxes_of
from sw.stages.walk_loops import boxes_across, loop, nest

__all__ = ["RowResults"]

_WINDOWS, _ADDRESS = Level.WINDOWS.value, Level.ADDRESS.value


@dataclasses.dataclass(frozen=True)
class _Layout:
    """Slot of a result's buffer.

    Parameters
    ----------
    elements : int
        Of a slot.
    write, read : Walk
        The write walk is that of a single copy.
    copies : tuple of (int, int)
        Copies that lie side by side in a vector and the elements between them; then groups of
        these, likewise.
    box : int
        Columns of a box of the store.
    boxes, slots : int
        Boxes and slots of a block of rows.
    """

    elements: int
    write: Walk
    read: Walk
    copies: tuple[tuple[int, int], tuple[int, int]]
    box: int
    boxes: int = 1
    slots: int = 1


class RowResults:
    """Buffers and stores of the results of one lane program.

    Parameters
    ----------
    frame : RowFrame
    number : int
        The lane program, all of whose results are stored.

    Raises
    ------
    Unfit
        If no buffer takes them.
    """

    def __init__(self, frame: RowFrame, number: int) -> None:
        self._frame, self._number, self._code = frame, number, frame.codes[number]
        self._values = frame.sent(number)
        #: Buffers of each result in a line.
        self._parts = frame.result_parts(number)
        #: Groups of rows side by side in a block of results, and such blocks.
        self._copies = frame.count(number) // self._parts
        self._blocks = frame.blocks * frame.turns(number)
        #: Whether the results of several columns are packed in a vector.
        self._packed = frame.takes_rows(number)
        #: Whether the store streams of an AGCU that take turns are of different results.
        self._in_turn = len(frame.region.outputs) > 1 and not frame.results.apart
        #: Boxes of a statistic for a block of rows. Streams that take turns have as many: it is
        #: stored once for each of another result.
        self._boxes = max(map(self._wide_boxes, frame.region.outputs)) if self._in_turn else 1
        for value in self._values if self._in_turn else ():
            boxes = self._wide_boxes(value)
            if not self._code.sends_statistic(value) and boxes != self._boxes:
                raise unfit("Boxes of a block of each result", f"be {self._boxes}", boxes)

    def add(self, line: int) -> None:
        """Add the buffers and stores of a line, and the streams from its PCUs."""
        frame, edges = self._frame, self._edges()
        names = [self._store(line, value, edges) for value in self._values]
        for part, number in itertools.product(range(self._parts), range(len(edges) - 1)):
            first, end = (part * self._copies + each for each in edges[number : number + 2])
            sources = [
                (Socket(pcu_name(line, self._number, copy), PcuOutput.RESULT), 1)
                for copy in range(first, end)
            ]
            sinks = [Socket(each[part], number) for each in names]
            frame.parts.join(f"{names[0][part]}_columns{number}", sources, sinks)

    def _ratio(self, value: str) -> int:
        """Columns of a vector."""
        if not self._packed or self._code.sends_statistic(value):
            return 1
        return max(1, self._frame.parts.vector(self._form(value)) // self._frame.group)

    def _wide_boxes(self, value: str) -> int:
        """Boxes of a block of rows of a result."""
        frame, form = self._frame, self._form(value)
        if any(code.sends_statistic(value) for code in frame.codes):
            return 1
        if frame.in_pieces:
            return frame.pieces(form).slots
        return boxes_across(frame.region.columns, frame.parts.vector(form), frame.results.widest)[1]

    def _form(self, value: str) -> Format:
        return self._frame.region.formats[self._frame.region.outputs[value]]

    def _edges(self) -> list[int]:
        """Copies at which the write engines of a buffer begin, and the end."""
        copies, ratio = self._copies, max(map(self._ratio, self._values))
        if copies > ratio and copies % ratio:
            raise unfit("Copies of a chain", f"be a multiple of {ratio}", copies)
        edges = [0, copies]
        if copies > (1 if self._frame.results.engines > 1 else MERGED) and (
            len(self._values) == 1 or copies > MERGED
        ):
            edges.insert(1, copies // ratio // 2 * ratio if copies > ratio else copies // 2)
        for first, end in itertools.pairwise(edges):
            if end - first > MERGED:
                raise unfit("Merged results", f"be at most {MERGED} an input", end - first)
        return edges

    def _vectors(self, value: str) -> int:
        """Vectors of a result for a group of rows."""
        form = self._form(value)
        if self._code.sends_statistic(value):
            return self._frame.statistic_vectors(form)
        columns = ceil_div(self._frame.region.columns, self._ratio(value))
        return columns * self._frame.halves(form)

    def _others(self, value: str) -> tuple[int, int]:
        """Vectors that are sent before a result, and after it."""
        at = self._values.index(value)
        counts = [self._vectors(each) for each in self._values]
        return sum(counts[:at]), sum(counts[at + 1 :])

    def _store(self, line: int, value: str, edges: list[int]) -> list[str]:
        """Buffers of a result, and the store that takes a box of each in turn; returns names."""
        frame, form = self._frame, self._form(value)
        statistic = self._code.sends_statistic(value)
        layout = self._statistic(value) if statistic else self._columns(value)
        writes = tuple(self._write(layout, *each) for each in itertools.pairwise(edges))
        element = form.bits // 8
        hold = Hold(layout.elements * element, element, writes, (layout.read,))
        vector = frame.parts.vector(form)
        # What waits for its turn must have room.
        least = layout.slots if self._in_turn else 1
        tensor = frame.region.outputs[value]
        names = [f"line{line}_{tensor}"]
        if self._parts > 1:
            names = [f"{names[0]}_{part}" for part in range(self._parts)]
        for name in names:
            frame.parts.hold(
                name, hold, wanted=2 * least, rate=0.5, alignment=vector, tokens=False, least=least
            )
        rows, turns = frame.group * self._copies, frame.turns(self._number)
        step = rows * self._parts
        row = line * step * turns
        box = boxes_of(frame.arrays, tensor, (layout.box, rows), row)
        loops = [
            BoxLoop(frame.blocks, 1, step * turns * frame.lines if frame.blocks > 1 else 0),
            *([BoxLoop(turns, 1, step)] if turns > 1 else []),
            BoxLoop(layout.boxes, 0, layout.box if layout.boxes > 1 and not statistic else 0),
            *([BoxLoop(self._parts, 1, rows)] if self._parts > 1 else []),
        ]
        sources = [(Socket(name), 1) for name in names]
        box, loops = in_segments(frame.arrays, box, loops, row)
        agcu = frame.result_agcu(line, value)
        frame.parts.store(f"line{line}_{tensor}_store", agcu, box, loops, sources)
        return names

    def _write(self, layout: _Layout, first: int, end: int) -> Walk:
        """Walk of a write engine, which takes the vectors of some copies in turn."""
        (most, near), (_, far) = layout.copies
        beside = min(most, end - first)
        groups = (end - first) // beside
        copies = nest((groups, far), (beside, near))
        return dataclasses.replace(
            layout.write,
            loops=(*layout.write.loops, *copies),
            offset=layout.write.offset + first // most * far + first % most * near,
            launches=LoopProgram(self._blocks),
        )

    def _columns(self, value: str) -> _Layout:
        """Columns one after the other, read by rows of whole boxes."""
        frame, form = self._frame, self._form(value)
        vector, halves, ratio = frame.parts.vector(form), frame.halves(form), self._ratio(value)
        before, after = self._others(value)
        if before % halves or after % halves:
            raise unfit("Vectors of other results", f"be a multiple of {halves}", before + after)
        before, after = before // halves, after // halves
        columns = frame.region.columns
        wide, boxes = boxes_across(columns, vector, frame.results.widest)
        # A slot holds a box, the last of which may be narrower, or whole rows behind other results.
        slots = 1 if before else boxes
        boxes //= slots
        if frame.in_pieces:
            if before:
                raise unfit("Results before rows in pieces", "be 0", before)
            pieces = frame.pieces(form)
            wide, boxes, slots = pieces.width, 1, pieces.slots
        # The first column stands at the beginning of a block.
        lead = ceil_div(before * ratio, vector) * vector
        begin = lead - before * ratio
        each = wide * boxes // ratio
        last = before + ceil_div(columns, ratio) + after - (slots - 1) * each
        high = max(lead + wide * boxes, begin + last * ratio)
        band = ceil_div(high, vector) * vector**2
        windows, over, steps = _steps(slots, each, last, ratio * vector)
        beside = min(ratio, self._copies)
        groups = self._copies // beside
        write = Walk(
            (steps, *([loop(halves, band)] if halves > 1 else [])),
            offset=begin * vector,
            access=ACCESS_OF_ROWS[ratio],
            windows=windows,
            slots=over,
        )
        read = Walk(
            (
                loop(boxes, wide * vector),
                loop(groups * halves, band),
                loop(min(vector, frame.group * beside), 1),
                loop(wide // vector, vector**2),
            ),
            offset=lead * vector,
            access=Access.COLUMN,
            launches=LoopProgram(self._blocks),
            windows=LoopProgram(slots),
            last_level=Level.ADDRESS + 1,
        )
        copies = ((beside, frame.group), (groups, halves * band))
        size = groups * halves * band
        return _Layout(size, write, read, copies, wide, boxes * slots, slots)

    def _statistic(self, value: str) -> _Layout:
        """One element per row: the first one of a block's row, which holds nothing else."""
        frame, form = self._frame, self._form(value)
        vector, own = frame.parts.vector(form), frame.halves(form)
        block = vector**2
        before, after = self._others(value)
        after += self._vectors(value) - own
        first, blocks, steps = self._lone_blocks(own, before, after, block)
        write = Walk(steps, access=Access.ROW)
        copies = self._copies
        read = Walk(
            (
                loop(copies, blocks * block),
                loop(own, block),
                loop(min(vector, frame.group), 1),
            ),
            offset=first * block,
            access=Access.COLUMN,
            launches=LoopProgram(self._blocks),
            repeats=LoopProgram(self._boxes),
            last_level=Level.ADDRESS,
        )
        beside = ((1, 0), (copies, blocks * block))
        return _Layout(copies * blocks * block, write, read, beside, vector, self._boxes)

    def _lone_blocks(
        self, own: int, before: int, after: int, block: int
    ) -> tuple[int, int, tuple[LoopProgram, ...]]:
        """First block that is read, blocks of a copy, and loops over the vectors of all results.

        A vector that is written over another one, or into a block of its own, is not read.
        """
        if all(map(self._code.sends_statistic, self._values)):
            count = before + own + after
            return before, count, (loop(count, block),)
        if own == 1 and not after:
            return 0, 1, (loop(before + 1, 0),)
        if own == 1:
            rest = LoopProgram(before + 1, slope=after - before - 1, outer=_ADDRESS)
            return 0, 2, (LoopProgram(2, stride=block), rest)
        if own == 2 and not after:
            rest = LoopProgram(before + 1, slope=-before, outer=_ADDRESS)
            return 0, 2, (LoopProgram(2, stride=block), rest)
        if own == 2 and not before:
            kept = LoopProgram(2, stride=block, slope=-1, outer=_ADDRESS)
            rest = LoopProgram(1, slope=after - 1, outer=_ADDRESS)
            return 0, 3, (LoopProgram(2, stride=2 * block), kept, rest)
        raise unfit("Results on one side of a statistic", "be 0", min(before, after))


def _steps(
    slots: int, each: int, last: int, stride: int
) -> tuple[LoopProgram, LoopProgram, LoopProgram]:
    """Loops over windows, slots and their steps, of which the last slot may have others."""
    if slots == 1:
        return LoopProgram(), LoopProgram(), loop(last, stride)
    if last == each:
        return LoopProgram(), LoopProgram(slots), loop(each, stride)
    over = LoopProgram(slots - 1, slope=2 - slots, outer=_WINDOWS)
    steps = LoopProgram(each, stride=stride, slope=last - each, outer=_WINDOWS)
    return LoopProgram(2), over, steps
