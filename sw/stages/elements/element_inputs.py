"""Buffers of the inputs of element math: their slots, walks and loads.

A tile passes block by block. A vector along the columns is read again for each row of a block. Of a
tensor of one element per row, or of one element, each element becomes a vector: as many copies of
it as a vector has elements are loaded as rows of a block, and written by columns, so the first row
of the block is read.
"""

from __future__ import annotations

import dataclasses

from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.limits import MAX_CREDITS
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import Access, Level
from sw.passes.field_limits import require_count
from sw.stages.elements.element_blocks import SLOTS, ElementBlocks
from sw.stages.region import Source, TilePart
from sw.stages.segment_digits import in_segments
from sw.stages.stage_graph import Walk, argument_of, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["ElementInput"]

#: Part of a PMU that a vector along the columns may take, to be loaded once: a quarter.
_SHARE = 4


@dataclasses.dataclass(frozen=True)
class ElementInput:
    """An input, the blocks of which it is, and the chip.

    Parameters
    ----------
    blocks : ElementBlocks
    source : Source
    config : ChipConfig
    """

    blocks: ElementBlocks
    source: Source
    config: ChipConfig

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return self.config.width_bits // self.source.type.format.bits

    @property
    def slot(self) -> int:
        """Elements of a slot."""
        columns, rows = self.blocks.columns, self.blocks.rows
        match self.source.part:
            case TilePart.ROW:
                return columns
            case TilePart.COLUMN:
                return self.vector**2 * (1 if self._is_single else rows)
        return rows * columns

    @property
    def slots(self) -> tuple[int, int]:
        """Least slots of its buffer, and those that it can use."""
        if self._is_loaded_once:
            across = self.blocks.counts(0)[1]
            return across, across
        return 1, 1 if self._is_single else SLOTS

    @property
    def alignment(self) -> int:
        """Elements of which slots begin at a multiple."""
        return self.vector if self.source.part is TilePart.COLUMN else 2

    @property
    def common(self) -> bool:
        """Whether all lines take the same boxes."""
        if self.source.part is TilePart.ROW:
            return self._is_loaded_once and not self.blocks.by_columns
        return self.source.part is TilePart.COLUMN and (self._is_single or self.blocks.by_columns)

    def write(self, line: int) -> Walk:
        """Walk of the write engine of a line's buffer."""
        down, across = map(LoopProgram, self.blocks.counts(line))
        once = LoopProgram()
        vector, vectors = self.vector, self.slot // self.vector
        if self.source.part is not TilePart.COLUMN:
            launches = once if self._is_loaded_once else down
            return Walk((loop(vectors, vector),), launches=launches, windows=across)
        copies = (loop(self.slot // vector**2, vector**2), loop(vector, 1))
        launches = once if self._is_single else down
        return Walk(copies, access=Access.COLUMN, launches=launches)

    def read(self, line: int) -> Walk:
        """Walk of the read engine, in packets of the blocks."""
        counts = self.blocks.counts(line)
        down, across = map(LoopProgram, counts)
        vector, columns = self.vector, self.blocks.columns
        match self.source.part:
            case TilePart.ROW:
                walk = self._walk(0, vector)
                if self._is_loaded_once:
                    return dataclasses.replace(walk, repeats=down, slots=across)
            case TilePart.COLUMN:
                walk = self._walk(0 if self._is_single else vector**2, 0)
                if self._is_single:
                    require_count("blocks", counts[0] * counts[1])
                    return dataclasses.replace(walk, repeats=LoopProgram(counts[0] * counts[1]))
                return dataclasses.replace(walk, launches=down, repeats=across)
            case _:
                walk = self._walk(columns, vector)
        return dataclasses.replace(walk, launches=down, windows=across)

    def boxes(self, line: int) -> tuple[tuple[Descriptor, int], list[BoxLoop]]:
        """Descriptor and launch argument of a line's boxes, and the loops over them."""
        row, _ = self.blocks.place(line)
        return in_segments(self.blocks.arrays, *self._boxes(line), row)

    def _boxes(self, line: int) -> tuple[tuple[Descriptor, int], list[BoxLoop]]:
        """The same, with all rows as one dimension."""
        blocks, tensor = self.blocks, self.source.tensor
        row, column = blocks.place(line)
        match self.source.part:
            case TilePart.ROW:
                box = boxes_of(blocks.arrays, tensor, (blocks.columns, 1), 0, column)
                again = BoxLoop(1 if self._is_loaded_once else blocks.counts(line)[0])
                return box, [again, blocks.loop(line, 1, 0)]
            case TilePart.COLUMN:
                loop_down = BoxLoop(1) if self._is_single else blocks.loop(line, 0, 2)
                return self._copies(row), [loop_down]
        return blocks.boxes(line, tensor)

    def _copies(self, row: int) -> tuple[Descriptor, int]:
        """Boxes of as many copies of each element of a column as a vector has elements."""
        number, array = argument_of(self.blocks.arrays, self.source.tensor)
        first = 0 if self._is_single else row
        descriptor = Descriptor(
            base=first * array.pitch,
            format=ElementFormat.of(array.format),
            dims=(1, self.vector, array.matrix[0] - first),
            strides=(0, array.pitch),
            box=(self.vector, self.vector, 1 if self._is_single else self.blocks.rows),
        )
        return descriptor, number

    @property
    def _is_loaded_once(self) -> bool:
        """Whether a vector along the columns is loaded once, all of a line's part of it."""
        if self.source.part is not TilePart.ROW:
            return False
        across = self.blocks.counts(0)[1]
        room = self.config.pmu.capacity_bytes // _SHARE
        fits = across * self.slot * self.source.type.format.bits // 8 <= room
        lines = 1 if self.blocks.by_columns else self.blocks.lines
        return fits and across <= min(self.config.pmu.slots, MAX_CREDITS // lines)

    @property
    def _is_single(self) -> bool:
        return self.blocks.is_single(self.source)

    def _walk(self, row: int, chunk: int) -> Walk:
        """Walk over the vectors of a block, of which it has so many elements for each step.

        Parameters
        ----------
        row, chunk : int
            Elements from a row of the block to the next one, and from a vector to the next.
        """
        blocks, vector = self.blocks, self.vector
        packet, wide = blocks.packet // vector, blocks.columns // vector
        if (row, chunk) == (blocks.columns, vector):
            loops = [loop(blocks.packets, blocks.packet), loop(packet, vector)]
        elif wide % packet == 0:
            loops = [loop(blocks.rows, row), loop(wide // packet, packet * chunk)]
            loops += [loop(packet, chunk)]
        else:
            high = packet // wide
            loops = [loop(blocks.rows // high, high * row), loop(high, row), loop(wide, chunk)]
        # A packet is the last loop, or behind the first one.
        inner = 1 if wide % packet else len(loops) - 1
        return Walk(tuple(loops), last_level=Level.ADDRESS + inner)
