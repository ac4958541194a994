"""Buffers of vectors along the columns, whose elements lanes take by columns of a group of rows.

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
from hw.arch.words.pmu_word import ENGINE_LOOPS, Access, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32
from sw.passes.field_limits import require_count, unfit
from sw.stages.long_rows import chunks_of, vector_of
from sw.stages.pipeline import pcu_name
from sw.stages.row_frame import RowFrame, RowPieces, Streamed
from sw.stages.stage_graph import Hold, Socket, Walk
from sw.stages.walk_loops import loop

__all__ = ["add_vectors"]

_ROWS = {1: Access.ROW, 2: Access.TWO_ROWS, 4: Access.FOUR_ROWS}
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
        writes, (read, step), slot = self._walks(pieces)
        loads = [BoxLoop(1)]
        if pieces:
            loads = [BoxLoop(passes), BoxLoop(pieces.slots, 0, pieces.width)]
            writes = tuple(pieces.written(each, passes) for each in writes)
            read = pieces.read(read, step, passes, whole=self._whole)
        else:
            read = dataclasses.replace(read, repeats=LoopProgram(passes))
        name = f"{'_'.join(self._values)}_{kind}"
        element = self._form.bits // 8
        hold = Hold(slot * element, element, writes, (read,))
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

    def _walks(self, pieces: RowPieces | None) -> tuple[tuple[Walk, ...], tuple[Walk, int], int]:
        """Walks that write a slot, one that reads it and its columns a step, and a slot's size."""
        columns, vector = self._frame.region.columns, self._vector
        chunks = pieces.size if pieces else chunks_of(columns, self._form, vector)
        if self._whole and self._taken == 1:
            write = Walk((loop(chunks, vector),))
            read = Walk((loop(ceil_div(columns, vector), vector),), last_level=Level.ADDRESS)
            return (write,), (read, vector), chunks * vector
        writes = tuple(
            Walk(
                (loop(self._times, len(self._values)), loop(chunks, vector**2)),
                offset=number,
                access=Access.COLUMN,
            )
            for number in range(len(self._values))
        )
        read, rows = self._by_rows() if self._whole else (Walk((), last_level=ENGINE_LOOPS), 1)
        stride = rows * (rows if read.element_bytes else vector)
        steps = LoopProgram(ceil_div(columns, rows), stride=stride)
        return writes, (dataclasses.replace(read, loops=(steps,)), rows), chunks * vector**2

    def _by_rows(self) -> tuple[Walk, int]:
        """Walk over vectors of several rows of a block, without its loop, and these rows.

        Raises
        ------
        Unfit
            If no access has as many columns as the lanes take elements.
        """
        rows = self._vector // self._taken
        if rows in _ROWS:
            return Walk((), access=_ROWS[rows], last_level=Level.ADDRESS), rows
        if len(self._values) == 1 and self._taken == 2 and self._form == bf16:
            # Two equal elements are a word, and as many words of a column a vector.
            word = fp32.bits // 8
            walk = Walk((), access=Access.COLUMN, last_level=Level.ADDRESS, element_bytes=word)
            return walk, rows
        rule = f"be one of {', '.join(map(str, _ROWS))}"
        raise unfit(f"Columns of `{self._values[0]}` in a vector", rule, rows)
