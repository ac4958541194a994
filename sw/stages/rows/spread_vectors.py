"""Buffers that give lanes vectors along the columns: an element, or a pair, for each column.

A stream gives an element for each vector of the source, or one of each of two vectors. If a column
has several vectors, each of them takes the element again. So a vector is written as columns of a
block, side by side with itself and with the other one, and read by rows:

    g0 b0 g0 b0 | g1 b1 g1 b1 | ...      two vectors, and two vectors per column of the source

Where packets are single columns, a vector of the stream is one row of the block, because the lanes
drop the rest of it with each packet. Where they are whole rows, it has all rows that fit.
"""

from __future__ import annotations

import dataclasses

from hw.arch.lanes.phase_word import AuxiliaryUse
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuInput
from hw.arch.words.pmu_word import ACCESS_OF_ROWS, ENGINE_LOOPS, Access, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32
from sw.passes.field_limits import require_count, unfit
from sw.stages.long_rows import chunks_of, vector_of
from sw.stages.pipeline import pcu_name
from sw.stages.rows.row_frame import RowFrame, Streamed
from sw.stages.rows.row_pieces import RowPieces
from sw.stages.stage_graph import Hold, Socket, Walk
from sw.stages.walk_loops import loop

__all__ = ["add_vectors"]

_SPREAD = AuxiliaryUse.SPREAD, AuxiliaryUse.SPREAD_PAIR


def add_vectors(frame: RowFrame) -> None:
    """Add buffers, loads and streams of all vectors along the columns.

    Raises
    ------
    Unfit
        If no buffer gives one in the order in which lanes take it.
    """
    users: dict[tuple[tuple[str, ...], bool], list[int]] = {}
    for number, code in enumerate(frame.codes):
        for each in code.phases:
            if any(map(frame.is_row, each.beside)):
                if each.phase.auxiliary not in _SPREAD:
                    tensor = frame.region.inputs[each.beside[0]].tensor
                    raise unfit(f"Vector `{tensor}`", "be spread, an element for every column", 1)
                users.setdefault((each.beside, frame.whole and number == 0), []).append(number)
    order = list(frame.region.inputs)
    for values, first in sorted(users, key=lambda each: (order.index(each[0][0]), not each[1])):
        _SpreadVectors(frame, values, users[values, first]).add("rows" if first else "columns")


@dataclasses.dataclass(frozen=True)
class _Slot:
    """Slot of a buffer.

    Parameters
    ----------
    elements : int
    writes : tuple of Walk
        One for each vector.
    read : Walk
    columns : int
        Columns whose elements a vector of the stream has.
    """

    elements: int
    writes: tuple[Walk, ...]
    read: Walk
    columns: int


class _SpreadVectors:
    """One stream of vectors along the columns.

    Parameters
    ----------
    frame : RowFrame
    values : tuple of str
        One vector, or two.
    numbers : list of int
        Lane program of each phase that takes them.
    """

    def __init__(self, frame: RowFrame, values: tuple[str, ...], numbers: list[int]) -> None:
        self._frame, self._values, self._numbers = frame, values, numbers
        self._form = frame.form_of(values[0])
        self._vector = frame.parts.vector(self._form)
        self._whole = frame.takes_rows(numbers[0])
        sources = (frame.codes[each] for each in numbers)
        #: Vectors of a column of the source.
        self._times = max(frame.halves(each.formats[each.source]) for each in sources)
        #: Elements that the lanes take for a column.
        self._taken = self._times * len(values)
        if self._taken > self._vector:
            rule = f"be at most {self._vector}, those of a vector"
            raise unfit(f"Elements for a column of `{values[0]}`", rule, self._taken)

    def add(self, kind: str) -> None:
        """Add the buffer, loads and stream, for packets of one kind."""
        frame, columns = self._frame, self._frame.region.columns
        pieces = None
        if frame.streamed is Streamed.VECTORS:
            pieces = frame.pieces(self._form)
        passes = frame.blocks * frame.turns(self._numbers[0])
        if self._numbers[0] == 0 and self._whole:
            passes *= len(self._numbers)
        require_count("passes over a vector", passes)
        slot = self._slot(pieces)
        loads = [BoxLoop(1)]
        if pieces:
            loads = [BoxLoop(passes), BoxLoop(pieces.slots, 0, pieces.width)]
            writes = tuple(pieces.written(each, passes) for each in slot.writes)
            read = pieces.read(slot.read, slot.columns, passes, whole=self._whole)
        else:
            writes = slot.writes
            read = dataclasses.replace(slot.read, repeats=LoopProgram(passes))
        name = f"{'_'.join(self._values)}_{kind}"
        element = self._form.bits // 8
        hold = Hold(slot.elements * element, element, writes, (read,))
        frame.parts.hold(
            name, hold, wanted=2 if pieces else 1, rate=0.2, alignment=self._vector, tokens=True
        )
        for number, value in enumerate(self._values):
            tensor = vector_of(
                frame.arrays,
                frame.region.inputs[value].tensor,
                columns,
                self._vector,
                self._times,
                pieces.width if pieces else None,
            )
            load = f"{name}_load{number or ''}"
            frame.parts.load(load, frame.lines - 1, tensor, loads, [Socket(name, number)])
        takers = [
            Socket(pcu_name(line, number, index), PcuInput.AUXILIARY)
            for line in range(frame.lines)
            for index in range(frame.count(self._numbers[0]))
            for number in dict.fromkeys(self._numbers)
        ]
        frame.parts.join(f"{name}_elements", [(Socket(name), 1)], takers)

    def _slot(self, pieces: RowPieces | None) -> _Slot:
        """Slot of whole vectors, or of pieces of them."""
        columns, vector = self._frame.region.columns, self._vector
        chunks = pieces.size if pieces else chunks_of(columns, self._form, vector)
        if self._whole and self._taken == 1:
            write = Walk((loop(chunks, vector),))
            read = Walk((loop(ceil_div(columns, vector), vector),), last_level=Level.ADDRESS)
            return _Slot(chunks * vector, (write,), read, vector)
        writes = tuple(
            Walk(
                (loop(self._times, len(self._values)), loop(chunks, vector**2)),
                offset=number,
                access=Access.COLUMN,
            )
            for number in range(len(self._values))
        )
        rows = vector // self._taken if self._whole else 1
        read = self._read(LoopProgram(ceil_div(columns, rows), stride=rows * vector), rows)
        return _Slot(chunks * vector**2, writes, read, rows)

    def _read(self, steps: LoopProgram, rows: int) -> Walk:
        """Walk over vectors of so many rows of a block, from its loop over elements.

        Raises
        ------
        Unfit
            If no access has as many columns as the lanes take elements.
        """
        if not self._whole:
            return Walk((steps,), last_level=ENGINE_LOOPS)
        if rows in ACCESS_OF_ROWS:
            return Walk((steps,), access=ACCESS_OF_ROWS[rows], last_level=Level.ADDRESS)
        if len(self._values) == 1 and self._taken == 2 and self._form == bf16:
            # Two equal elements are a word, and as many words of a column a vector.
            return Walk(
                (dataclasses.replace(steps, stride=steps.stride // 2),),
                access=Access.COLUMN,
                last_level=Level.ADDRESS,
                element_bytes=fp32.bits // 8,
            )
        rule = f"be one of {', '.join(map(str, ACCESS_OF_ROWS))}"
        raise unfit(f"Columns of `{self._values[0]}` in a vector", rule, rows)
