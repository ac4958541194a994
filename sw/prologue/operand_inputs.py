"""Inputs of the element math of an operand: loads and buffers, in the boxes of the operand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from hw.arch.agcu import INDEX_BITS
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX, Descriptor
from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, IndexUse, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.passes.field_limits import require_count, unfit
from sw.prologue.computed_product import GatheredRows, Operand
from sw.stages.pipeline import PipelineParts
from sw.stages.region import TilePart
from sw.stages.stage_graph import Hold, Load, Socket, Walk, argument_of, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["SLOTS", "TABLES", "OperandInputs"]

#: Slots that are wanted for tables, and for boxes of tensors and of row numbers.
TABLES, SLOTS = 2, 4


class OperandInputs:
    """Inputs of the chains that compute an operand, in a pipeline.

    Parameters
    ----------
    parts : PipelineParts
    arrays : tuple of ArraySpec
        Arguments of the launch.
    operand : Operand
    load : Load
        The load of the operand, if it lay in memory.
    packet : int
        Elements of a packet.
    line : int
        Number of the chains.
    """

    def __init__(
        self,
        parts: PipelineParts,
        arrays: tuple[ArraySpec, ...],
        operand: Operand,
        load: Load,
        packet: int,
        line: int,
    ) -> None:
        self._parts, self._arrays = parts, arrays
        self._operand, self._line = operand, line
        self._agcu, self._packet = load.agcu, packet
        self._columns, self._rows = load.descriptor.box
        # The boxes of a part of the slots begin behind those of the other part.
        self._row, before = divmod(load.descriptor.base, operand.array.pitch)
        self._column = before * 8 // operand.array.format.bits
        self._loops = tuple(each for each in load.loops if each.count > 1)
        self._boxes = math.prod(each.count for each in self._loops)
        require_count("boxes of a computed operand", self._boxes)

    def add(self, value: str, takers: Sequence[Socket]) -> None:
        """Add the loads and buffers of an input, and its stream of packets.

        Raises
        ------
        Unfit
            If a table or a box does not fit.
        """
        source = self._operand.region.inputs[value]
        name = f"line{self._line}_{value}".replace("%", "")
        rows = self._operand.gathered.get(source.tensor)
        if rows is not None:
            self._gathered(name, rows)
        else:
            self._loaded(name, source.tensor, 1 if source.part is TilePart.ROW else self._rows)
        self._parts.join(f"{name}_packets", [(Socket(name), 1)], takers)

    def _read(self, form: Format, row: int) -> Walk:
        """Walk over the packets of a box, whose rows in the slot are so many elements apart."""
        vector = self._parts.vector(form)
        packets, vectors = self._columns // self._packet, self._packet // vector
        inner = (loop(vectors, vector),) if vectors > 1 else ()
        return Walk(
            (loop(self._rows, row), loop(packets, self._packet), *inner),
            windows=LoopProgram(self._boxes),
            last_level=Level.ADDRESS + 2 if inner else ENGINE_LOOPS,
        )

    def _loaded(self, name: str, tensor: str, rows: int) -> None:
        """A tensor, in boxes of so many rows: those of the operand, or one for all."""
        form = argument_of(self._arrays, tensor)[1].format
        vector = self._parts.vector(form)
        write = Walk(
            (loop(rows * self._columns // vector, vector),), windows=LoopProgram(self._boxes)
        )
        read = self._read(form, self._columns if rows == self._rows else 0)
        hold = Hold(rows * self._columns * form.bits // 8, form.bits // 8, (write,), (read,))
        self._hold(name, hold, SLOTS)
        still = rows < self._rows
        row, column = 0 if still else self._row, self._column
        box = boxes_of(self._arrays, tensor, (self._columns, rows), row, column)
        loops = [_still(each) if still and each.dimension == 1 else each for each in self._loops]
        self._load(name, box, loops)

    def _gathered(self, name: str, rows: GatheredRows) -> None:
        """Rows of a table in a PMU, by numbers from memory."""
        _, table = argument_of(self._arrays, rows.table)
        form, high = table.format, rows.table_rows
        vector, element = self._parts.vector(form), form.bits // 8
        if high > MAX_BOX:
            raise unfit("Rows of a table in a PMU", f"be at most {MAX_BOX}, the largest box", high)
        pitch = 1 << (self._columns - 1).bit_length()
        # Boxes of the same columns take rows of one slot.
        inner = 0
        while inner < len(self._loops) and not _moves(self._loops[-1 - inner], 0):
            inner += 1
        outer = self._loops[: len(self._loops) - inner]
        again = math.prod(each.count for each in self._loops[len(outer) :])
        windows = LoopProgram(self._boxes // again)
        write = Walk((loop(high, pitch), loop(self._columns // vector, vector)), windows=windows)
        read = self._read(form, 0)
        read = dataclasses.replace(read, windows=windows, repeats=LoopProgram(again))
        indexed = IndexProgram(IndexUse.GATHER, high, pitch.bit_length() - 1, Level.ADDRESS + 1)
        hold = Hold(high * pitch * element, element, (write,), (read,), indexed)
        self._hold(name, hold, TABLES)
        box = boxes_of(self._arrays, rows.table, (self._columns, high), 0, self._column)
        loops = [_still(each) if each.dimension == 1 else each for each in outer]
        self._load(name, box, loops)
        self._numbers(name, rows)

    def _numbers(self, name: str, rows: GatheredRows) -> None:
        """Numbers of the rows of each box, in whole vectors, to the stream of indices."""
        lanes = self._parts.config.width_bits // INDEX_BITS
        vectors = ceil_div(self._rows, lanes)
        if vectors * lanes > MAX_BOX:
            raise unfit("Row numbers of a box", f"be at most {MAX_BOX}", vectors * lanes)
        walk = Walk(
            (loop(vectors, lanes),),
            windows=LoopProgram(self._boxes),
            last_level=Level.ADDRESS,
        )
        numbers, size = f"{name}_numbers", INDEX_BITS // 8
        self._hold(numbers, Hold(vectors * lanes * size, size, (walk,), (walk,)), SLOTS)
        if self._row * size % BASE_ALIGNMENT:
            rule = f"begin at a multiple of {BASE_ALIGNMENT} bytes"
            raise unfit("Row numbers of a part of a slot", rule, self._row * size)
        box = boxes_of(self._arrays, rows.numbers, (vectors * lanes, 1), 0, self._row)
        loops = [
            BoxLoop(each.count, 0, each.step) if _moves(each, 1) else BoxLoop(each.count)
            for each in self._loops
        ]
        self._load(numbers, box, loops)
        self._parts.join(f"{numbers}_named", [(Socket(numbers), 1)], [Socket(name, 1)])

    def _load(self, name: str, box: tuple[Descriptor, int], loops: Sequence[BoxLoop]) -> None:
        sinks = [Socket(name)]
        self._parts.load(f"{name}_load", self._agcu, box, loops or [BoxLoop(1)], sinks)

    def _hold(self, name: str, hold: Hold, wanted: int) -> None:
        self._parts.hold(name, hold, wanted=wanted, rate=1.0, alignment=2, tokens=True)


def _moves(box_loop: BoxLoop, dimension: int) -> bool:
    """Whether a loop over boxes moves a coordinate."""
    return box_loop.dimension == dimension and box_loop.step > 0


def _still(box_loop: BoxLoop) -> BoxLoop:
    """A loop over boxes that stays where it is."""
    return BoxLoop(box_loop.count)
