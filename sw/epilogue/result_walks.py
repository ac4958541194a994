"""Walks over the slots of a buffer of C, or of a tile beside the sums in the same order."""

from __future__ import annotations

import dataclasses

from hw.arch.loops import LoopProgram
from hw.arch.switch import MAX_PACKETS
from hw.arch.words.pmu_word import ACCESS_OF_ROWS, ENGINE_LOOPS, Access, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.epilogue.collector import Collector
from sw.passes.field_limits import Unfit
from sw.passes.plan import Plan
from sw.stages.operand_walks import pass_loop, vector_loops
from sw.stages.stage_graph import Walk
from sw.stages.walk_loops import loop, nest, require_loops

__all__ = ["ResultWalks", "chain_vector_walk", "latched_vector_walk", "vector_walk"]


class ResultWalks:
    """Walks over blocks of one format: in the order of results, and by rows of memory.

    All rows of one column of vectors lie one after the other.

    Parameters
    ----------
    plan : Plan
    pieces : int
        Slots per block of rows.
    form : Format
    groups : int
        Row groups in a slot.
    """

    def __init__(self, plan: Plan, pieces: int, form: Format, groups: int) -> None:
        self._plan, self._groups, self._pieces = plan, groups, pieces
        self.lanes = plan.config.width_bits // form.bits
        #: Rows of results per vector, which holds C elements of each.
        self._vector_rows = 32 // form.bits
        self._rows = plan.rows // pieces
        self._vectors = ceil_div(plan.rows, self._vector_rows) // pieces
        self._held = self._vectors * self._vector_rows
        self._column_stride = groups * self._held * self.lanes
        self._walk = Walk(
            (),
            launches=LoopProgram(plan.row_blocks),
            windows=LoopProgram(plan.c_slots),
            slots=LoopProgram(pieces),
        )

    def position(self, columns: int) -> int:
        """Element of the slot at which the columns of a number of PCUs end."""
        quotient, rest = divmod(columns, self._vector_rows)
        return quotient * self._column_stride + rest * self._plan.config.grid_columns

    def across(self, columns: int) -> tuple[tuple[int, int], ...]:
        """Counts and strides of the loops over the columns of PCUs, outermost first."""
        inner = min(columns, self._vector_rows)
        return (columns // inner, self.position(self._vector_rows)), (inner, self.position(1))

    def _steps(self, count: int, columns: int) -> tuple[tuple[int, int], ...]:
        """Counts and strides of the loops over steps of some columns of PCUs, outermost first.

        The columns of a vector's rows lie in one piece of the slot, those of the next ones in
        another, so steps within a piece are a loop of their own.

        Raises
        ------
        Unfit
            If the steps do not end with a piece.
        """
        rows = self._vector_rows
        if count == 1 or columns % rows == 0:
            return ((count, self.position(columns)),)
        inner = min(count, rows // columns)
        if rows % columns or count % inner:
            rule = f"steps of {columns} columns of PCUs that end with a vector of {rows} rows"
            raise Unfit(f"Walk must have {rule}, not {count}", value=count, rule=rule)
        return (count // inner, self.position(rows)), (inner, self.position(columns))

    def _passes(self) -> tuple[tuple[int, int], ...]:
        """Counts and strides of the loops over passes, outermost first."""
        plan = self._plan
        return (
            *self._steps(plan.halves * plan.together // plan.c_blocks, plan.col_par),
            *self._steps(
                plan.passes // plan.together, plan.pass_stride // plan.config.grid_columns
            ),
        )

    def results(self, columns: tuple[int, int], groups: tuple[int, int] = (0, 1)) -> Walk:
        """The order of results, a packet of a PCU after another.

        Parameters
        ----------
        columns, groups : tuple of (int, int)
            First and number of the PCU columns and of the row groups in the slot.

        Raises
        ------
        Unfit
            If it takes too many loops, or another order than one of loops.
        """
        plan, (first, taken), (row_first, row_count) = self._plan, columns, groups
        if plan.c_split:
            return self._split_results(columns, groups)
        step, last = self._vector_rows * self.lanes, ENGINE_LOOPS
        passes = self._passes()
        if plan.cut:
            vectors = max(1, plan.packet_rows // self._vector_rows)
            walked = nest(
                *passes,
                (self._vectors // vectors, vectors * step),
                *self.across(taken),
                (row_count, self._held * self.lanes),
                (vectors, step),
            )
            if vectors > 1:
                last = Level.ADDRESS + len(walked) - 1
        else:
            walked = nest(*passes, *self.across(taken), (row_count * self._vectors, step))
        return dataclasses.replace(
            self._walk,
            loops=require_loops(*walked),
            offset=self.position(first) + row_first * self._held * self.lanes,
            access=ACCESS_OF_ROWS[self._vector_rows],
            last_level=last,
        )

    def _split_results(self, columns: tuple[int, int], groups: tuple[int, int]) -> Walk:
        """The order of results of every other PCU column, if two passes at once share a vector.

        Parameters
        ----------
        columns, groups : tuple of (int, int)
            First and number of the PCU columns, and of the row groups, in the slot.
        """
        plan, (first, taken), (row_first, row_count) = self._plan, columns, groups
        step = self.position(plan.col_par + first) - self.position(first)
        return dataclasses.replace(
            self._walk,
            loops=(
                pass_loop(plan, step, Level.WINDOWS),
                loop(self._vectors, self._vector_rows * self.lanes),
                loop(taken, self.position(self._vector_rows)),
                loop(row_count, self._held * self.lanes),
            ),
            offset=self.position(first) + row_first * self._held * self.lanes,
            access=ACCESS_OF_ROWS[self._vector_rows],
        )

    def whole_passes(self, columns: int) -> Walk:
        """Each pass of a PCU of a row group a packet, for the first columns of PCUs.

        Raises
        ------
        Unfit
            If a slot has no whole pass of a PCU, or it takes too many loops.
        """
        plan = self._plan
        if plan.c_split or self._pieces > 1:
            rule = "slots of whole passes of a PCU"
            raise Unfit(
                f"A tile behind a vector in one stream must have {rule}, not of a part of its rows",
                value=self._pieces,
                rule=rule,
            )
        step = self._vector_rows * self.lanes
        walked = nest(*self._passes(), *self.across(columns))
        return dataclasses.replace(
            self._walk,
            loops=require_loops(*walked, *nest((self._vectors, step))),
            access=ACCESS_OF_ROWS[self._vector_rows],
            last_level=Level.ADDRESS + len(walked) if self._vectors > 1 else ENGINE_LOOPS,
        )

    def by_rows(self, stored: int) -> Walk:
        """Rows of memory, of some columns, a packet each."""
        loops: tuple[LoopProgram, ...] = (
            loop(self._groups, self._held * self.lanes),
            loop(self._rows, self.lanes),
            loop(stored // self.lanes, self._column_stride),
        )
        turned = self._plan.product.turned
        if turned:
            # A row in memory is a column of the slot.
            loops = (
                loops[0],
                loop(ceil_div(stored, self.lanes), self._column_stride),
                loop(min(stored, self.lanes), 1),
                loop(self._rows // self.lanes, self.lanes**2),
            )
        packet = len(loops) - 2
        if self._plan.c_split:
            # A packet has a vector of each row: the last column block has fewer of them.
            vectors = vector_loops(self._plan, self._column_stride, Level.WINDOWS)
            loops = (*vectors, *loops[:2])
            packet = len(loops) - 1
        return dataclasses.replace(
            self._walk,
            loops=loops,
            access=Access.COLUMN if turned else Access.ROW,
            last_level=Level.ADDRESS + packet,
        )


def vector_walk(
    plan: Plan, form: Format, columns: tuple[int, int], steps: int = 1, groups: int = 1
) -> Walk:
    """Walk over a vector along the columns: the elements of a PCU in a packet of one vector.

    Each element stands in as many rows of the slot as a vector has rows of C elements.

    Parameters
    ----------
    plan : Plan
    form : Format
    columns : tuple of (int, int)
        First and number of the PCU columns.
    steps, groups : int
        Packets of results of a PCU per pass, and row groups, that take the same elements.

    Raises
    ------
    Unfit
        If it takes too many loops, or the columns are no whole steps of it.
    """
    rows, width = 32 // form.bits, plan.config.grid_columns
    block = rows * (plan.config.width_bits // form.bits)
    first, count = columns
    inner = min(count, rows)
    if count % inner or first % rows + inner > rows:
        rule = f"steps of {rows} columns of PCUs, which a vector of {form.name} has"
        raise Unfit(
            f"Walk over a vector along the columns must have {rule}, not {count} from {first} on",
            value=count,
            rule=rule,
        )

    def position(pcus: int) -> int:
        return pcus // rows * block + pcus % rows * width

    return Walk(
        require_loops(
            *nest(
                (plan.halves // plan.c_blocks, position(plan.col_par)),
                (plan.passes, position(plan.pass_stride // width)),
                (steps, 0),
                (count // inner, block),
                (inner, width),
                (groups, 0),
            )
        ),
        offset=position(first),
        access=ACCESS_OF_ROWS[rows],
        launches=LoopProgram(plan.row_blocks),
        windows=LoopProgram(plan.c_slots),
        last_level=ENGINE_LOOPS,
    )


def latched_vector_walk(plan: Plan, collector: Collector, number: int, form: Format) -> Walk:
    """Walk over a vector for the PCUs of the product at a port of a result writer.

    Each pass sends the elements of each PCU once, those of a row group one after another.

    Raises
    ------
    Unfit
        If there are too many PCUs for a turn of packets, or as `vector_walk` does.
    """
    pcus = len(collector.pcus(number))
    if pcus > MAX_PACKETS:
        raise Unfit(
            f"A tile behind a vector in one stream must be that of at most {MAX_PACKETS} PCUs, "
            f"not {pcus}",
            value=pcus,
            rule=f"at most {MAX_PACKETS} PCUs",
        )
    groups = collector.row_groups(number)[1]
    return vector_walk(plan, form, collector.grid_columns(number), groups)


def chain_vector_walk(
    plan: Plan, collector: Collector, number: int, pieces: int, form: Format
) -> Walk:
    """Walk over a vector for the chain behind a port of a result writer, as `vector_walk`."""
    steps = plan.rows // plan.packet_rows // pieces
    groups = collector.row_groups(number)[1]
    walk = vector_walk(plan, form, collector.grid_columns(number), steps, groups)
    return dataclasses.replace(walk, repeats=LoopProgram(pieces))
