"""Pipelines that add rows to rows of a table by number: the table is updated in a PMU."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from hw.arch.agcu import INDEX_BITS
from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX
from hw.arch.gather.index_program import IndexProgram
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pmu import Beyond
from hw.arch.words.pmu_word import IndexUse, Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.gathers.load_streams import require_load_streams
from sw.gathers.row_scatter import RowScatter
from sw.passes.field_limits import Unfit, require_count
from sw.stages.grids import on_lines
from sw.stages.pipeline import Pipeline, PipelineParts, fitting
from sw.stages.stage_graph import Boxes, Hold, Socket, Walk, boxes_of
from sw.stages.walk_loops import loop

__all__ = ["adding_pipelines"]

#: Slots that are wanted for rows, and for blocks of numbers.
_SLOTS = 4
#: Estimated cycles that a box takes beside its vectors.
_BOX_CYCLES = 8
#: Bytes of an element, int32, and of a number.
_WORD = INDEX_BITS // 8


def adding_pipelines(
    scatter: RowScatter, arrays: tuple[ArraySpec, ...], config: ChipConfig, name: str
) -> Iterator[Pipeline]:
    """Pipelines for a scatter that adds, those with most AGCUs first.

    Parameters
    ----------
    scatter : RowScatter
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.

    Raises
    ------
    BadInputError
        If none fits.
    """
    single, double = (
        on_lines(config, functools.partial(_lines, scatter, arrays, config, tables))
        for tables in (1, 2)
    )
    # A refusal is that of one PMU per line.
    both = (each for each in double if isinstance(each, Pipeline))
    return fitting(itertools.chain(both, single), name)


def _lines(
    scatter: RowScatter,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    tables: int,
    lines: int,
) -> Pipeline:
    """Pipeline in which as many AGCUs each update blocks of columns of the table, one per PMU."""
    require_load_streams("scatter", config)
    parts = PipelineParts(config)
    lanes = config.width_bits // INDEX_BITS
    # Every block of columns but the first begins at an aligned address.
    whole = lanes if lines * tables == 1 else max(lanes, BASE_ALIGNMENT // _WORD)
    narrow = ceil_div(ceil_div(scatter.columns, lines * tables), whole) * whole
    single = ceil_div(ceil_div(scatter.columns, lines), whole) * whole
    constant = isinstance(scatter.source, int)
    if tables > 1 and (lines < config.agcu.count or constant or narrow == single):
        needed = "all AGCUs, and rows from memory of several vectors"
        raise Unfit(f"A scatter on {tables} PMUs a line must have {needed}", value=1, rule=needed)
    wide = narrow * tables
    lines = ceil_div(scatter.columns, wide)
    if wide > MAX_BOX:
        raise Unfit(
            f"A scatter on {lines} AGCUs takes rows of at most {lines * MAX_BOX} elements, "
            f"not {scatter.columns}",
            value=scatter.columns,
            rule=f"at most {lines * MAX_BOX} columns",
        )
    high = _block_rows(scatter, config, wide, narrow)
    for line in range(lines):
        _Line(parts, scatter, arrays, line, narrow, tables, high).add()
    down = ceil_div(scatter.table_rows, high)
    summary = f"{lines} lines of {scatter.table_rows} x {tables} x {narrow}"
    return parts.done(summary, high * down, wide)


def _row_pitch(wide: int) -> int:
    """Elements from a row of the table in a PMU to the next: a power of two."""
    return 1 << (wide - 1).bit_length()


def _block_rows(scatter: RowScatter, config: ChipConfig, wide: int, narrow: int) -> int:
    """Rows of a box: for the fewest cycles, with room for the table and for slots of rows."""
    capacity, pitch = config.pmu.capacity_bytes, _row_pitch(narrow)
    lanes = config.width_bits // INDEX_BITS
    least = ceil_div(scatter.table_rows, lanes) * lanes * pitch * _WORD
    if least > capacity:
        raise Unfit(
            f"A scatter that adds holds {scatter.table_rows} rows of {pitch} int32 of its table in "
            f"a PMU, {least} bytes, and a PMU has {capacity}",
            value=least,
            rule=f"at most {capacity} bytes of table: fewer rows, or narrower ones",
        )
    most = min(MAX_BOX, max(capacity // (_SLOTS * wide * _WORD), lanes))

    def cycles(high: int) -> int:
        """Vectors filled and stored, two cycles per sum, and the latency of each box."""
        boxes, updates = ceil_div(scatter.table_rows, high), scatter.rows
        if isinstance(scatter.source, str):
            updates = ceil_div(updates, high) * high
        return (boxes * high + updates) * 2 * (narrow // lanes) + _BOX_CYCLES * (
            boxes + updates // high
        )

    return min(
        (
            high
            for high in range(lanes, most + 1, lanes)
            if ceil_div(scatter.table_rows, high) * high * pitch * _WORD <= capacity
        ),
        key=lambda high: (cycles(high), -high),
    )


class _Line:
    """Stages of a line: numbers and rows in buffers, and a block of columns of the table.

    Parameters
    ----------
    parts : PipelineParts
    scatter : RowScatter
    arrays : tuple of ArraySpec
    number : int
        Its AGCU.
    narrow, tables, high : int
        Columns of a PMU, and PMUs; rows of a box.
    """

    def __init__(
        self,
        parts: PipelineParts,
        scatter: RowScatter,
        arrays: tuple[ArraySpec, ...],
        number: int,
        narrow: int,
        tables: int,
        high: int,
    ) -> None:
        self._parts = parts
        self._scatter = scatter
        self._arrays = arrays
        self._number = number
        self._narrow = narrow
        self._tables = tables
        self._wide = narrow * tables
        self._high = high
        self._lanes = parts.config.width_bits // INDEX_BITS
        self._vectors = narrow // self._lanes  # of a row in a PMU
        #: Boxes of the table, and rows that are added; those behind the last one are zeros.
        self._boxes = ceil_div(scatter.table_rows, high)
        whole = ceil_div(scatter.rows, high) * high
        self._updates = whole if isinstance(scatter.source, str) else scatter.rows

    def add(self) -> None:
        """Add the stages and streams."""
        require_count("rows of the table", self._boxes * self._high)
        require_count("rows", self._updates)
        self._add_numbers()
        self._add_rows()
        for table in range(self._tables):
            column = self._number * self._wide + table * self._narrow
            if column < self._scatter.columns:
                self._add_table(table, column)
        tables = [f"{self._name('table')}{each}" for each in range(self._tables)]
        tables = [each for each in tables if each in self._parts.stages]
        rows, numbers = self._name("rows"), self._name("numbers")
        self._parts.join(f"{rows}_added", [(Socket(rows), 1)], [Socket(each) for each in tables])
        sinks = [Socket(each, 1) for each in tables]
        self._parts.join(f"{numbers}_named", [(Socket(numbers), 1)], sinks)

    def _name(self, noun: str) -> str:
        return f"line{self._number}_{noun}"

    def _add_numbers(self) -> None:
        """Row numbers, a vector for as many updates as it has."""
        lanes = self._lanes
        block = min(MAX_BOX // lanes, ceil_div(self._updates, lanes)) * lanes
        blocks = ceil_div(self._updates, block)
        last = ceil_div(self._updates - (blocks - 1) * block, lanes)
        write = Walk((loop(block // lanes, lanes),), windows=LoopProgram(blocks))
        read = _whole_and_last(blocks, block // lanes, last, lanes)
        name = self._name("numbers")
        self._parts.hold(
            name,
            Hold(block * _WORD, _WORD, (write,), (read,)),
            wanted=_SLOTS,
            rate=1.0 / lanes,
            alignment=2,
            tokens=True,
        )
        self._parts.load(
            f"{name}_load",
            self._number,
            boxes_of(self._arrays, self._scatter.numbers, (block, 1)),
            [BoxLoop(blocks, 0, block if blocks > 1 else 0)],
            [Socket(name)],
        )

    def _add_rows(self) -> None:
        """Rows of the table, then those to add, in slots of a box."""
        scatter, lanes = self._scatter, self._lanes
        boxes, column = self._boxes, self._number * self._wide
        following: Boxes = ()
        if isinstance(scatter.source, str):
            added = self._updates // self._high
            source = boxes_of(self._arrays, scatter.source, (self._wide, self._high), column=column)
            following = ((*source, (BoxLoop(added, 1, self._high if added > 1 else 0),)),)
            boxes += added
        size = self._wide * self._high
        write = Walk((loop(size // lanes, lanes),), windows=LoopProgram(boxes))
        read = Walk(
            (
                loop(self._high, self._wide),
                loop(self._tables, self._narrow),
                loop(self._vectors, lanes),
            ),
            windows=LoopProgram(boxes),
            last_level=Level.ADDRESS + 2,
        )
        if not isinstance(scatter.source, str):
            read = self._with_constant(scatter.source)
        name = self._name("rows")
        self._parts.hold(
            name,
            Hold(size * _WORD, _WORD, (write,), (read,)),
            wanted=_SLOTS,
            rate=1.0 if following else 0.5,
            alignment=2,
            tokens=True,
        )
        self._parts.load(
            f"{name}_load",
            self._number,
            boxes_of(self._arrays, scatter.table, (self._wide, self._high), column=column),
            [self._table_boxes()],
            [Socket(name)],
            following=following,
        )

    def _with_constant(self, constant: int) -> Walk:
        """Walk over the table's boxes; behind the last one, vectors of a constant to add."""
        boxes, at = self._boxes, Level.ADDRESS.value
        if boxes > 1:
            launches = LoopProgram(2)
            windows = LoopProgram(boxes - 1, slope=2 - boxes, outer=Level.LAUNCHES)
            kinds = LoopProgram(1, slope=1, outer=Level.LAUNCHES)
        else:
            launches, windows, kinds = LoopProgram(), LoopProgram(), LoopProgram(2)
        return Walk(
            (kinds, *self._first_and_updates(self._high, self._wide)),
            launches=launches,
            windows=windows,
            last_level=Level.ADDRESS + 3,
            beyond=Beyond(at, 1, constant % (1 << INDEX_BITS)),
        )

    def _first_and_updates(self, rows: int, pitch: int) -> tuple[LoopProgram, ...]:
        """Loops of vectors inside a loop of two: those of so many rows, then those that are added.

        The second ones have the position of the first row.
        """
        outer = Level.ADDRESS.value
        return (
            LoopProgram(rows, stride=pitch if rows > 1 else 0, slope=1 - rows, outer=outer),
            LoopProgram(1, slope=self._updates - 1, outer=outer),
            loop(self._vectors, self._lanes),
        )

    def _table_boxes(self) -> BoxLoop:
        """Loop over the boxes of the table."""
        return BoxLoop(self._boxes, 1, self._high if self._boxes > 1 else 0)

    def _add_table(self, number: int, column: int) -> None:
        """The slot that is filled with a PMU's columns of the table, updated and stored."""
        lanes, scatter = self._lanes, self._scatter
        pitch, rows = _row_pitch(self._narrow), self._boxes * self._high
        fill = Level.ADDRESS.value
        write = Walk(
            (LoopProgram(2), *self._first_and_updates(rows, pitch)),
            beyond=Beyond(fill, 1),
            modulus=self._tables,
            index=number,
        )
        read = Walk((loop(rows, pitch), loop(self._vectors, lanes)), last_level=Level.LAUNCHES)
        indexed = IndexProgram(
            IndexUse.SCATTER_ADD,
            limit=scatter.table_rows,
            shift=pitch.bit_length() - 1,
            level=fill + 3,
        )
        name = f"{self._name('table')}{number}"
        self._parts.hold(
            name,
            Hold(rows * pitch * _WORD, _WORD, (write,), (read,), indexed),
            wanted=1,
            rate=1.0,
            alignment=2,
            tokens=False,
        )
        self._parts.store(
            f"{name}_store",
            self._number,
            boxes_of(self._arrays, scatter.table, (self._narrow, self._high), column=column),
            [self._table_boxes()],
            [(Socket(name), 1)],
        )


def _whole_and_last(blocks: int, vectors: int, last: int, stride: int) -> Walk:
    """Walk over slots of as many vectors each, but the last one."""
    if blocks == 1 or vectors == last:
        launches, windows, steps = LoopProgram(), LoopProgram(blocks), loop(last, stride)
    else:
        launches = LoopProgram(2)
        windows = LoopProgram(blocks - 1, slope=2 - blocks, outer=Level.LAUNCHES)
        slope = last - vectors
        steps = LoopProgram(vectors, stride=stride, slope=slope, outer=Level.LAUNCHES)
    return Walk((steps,), launches=launches, windows=windows, last_level=Level.LAUNCHES)
