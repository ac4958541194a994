"""Stage graph of a product of matrices: loads and buffers of A and B, a PCU grid, buffers of C."""

from __future__ import annotations

from hw.arch.descriptor import Descriptor
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu_word import Access, Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.passes.fit import Collector, Fit
from sw.passes.plan import Plan
from sw.stages.stage_graph import (
    Hold,
    Load,
    Product,
    Socket,
    Stage,
    StageGraph,
    Store,
    Stream,
    Walk,
    boxes_of,
)
from sw.stages.walk_loops import loop, nest

__all__ = ["product_graph"]

#: Token port of an AGCU for freed slots of A.
_A_PORT = 0


def product_graph(plan: Plan, places: Fit, arrays: tuple[ArraySpec, ...]) -> StageGraph:
    """Stages of a plan, and their streams.

    Parameters
    ----------
    plan : Plan
    places : Fit
    arrays : tuple of ArraySpec
        Arguments of the launch.
    """
    return _Builder(plan, places, arrays).graph()


def pcu_name(group: int, column: int) -> str:
    """Name of the PCU at a row group and a grid column."""
    return f"pcu{group}_{column}"


def _stream(agcu: int, operand: int) -> int:
    """Load stream of an operand (0 for A, 1 for B) at an AGCU.

    Odd AGCUs swap the two: each AGCU begins with the same stream number, and two AGCUs that begin
    with B would compete for the write port of its PMU.
    """
    return operand ^ agcu & 1


class _Builder:
    def __init__(self, plan: Plan, places: Fit, arrays: tuple[ArraySpec, ...]) -> None:
        self.plan = plan
        self.fit = places
        self.b_port = 0 if plan.one_operand else 1
        self.arrays = arrays
        self.stages: dict[str, Stage] = {}
        self.streams: list[Stream] = []

    def graph(self) -> StageGraph:
        """The complete graph."""
        plan = self.plan
        for group in range(plan.row_par):
            for column in range(plan.col_par):
                self.stages[pcu_name(group, column)] = Product(
                    PcuProgram(
                        fmt=plan.product.fmt,
                        weight_fmt=plan.product.b_fmt,
                        out=plan.product.out,
                        weight=FilterProgram(plan.col_par, column),
                        packet_vectors=int(plan.one_pass),
                    )
                )
        self._a()
        self._b()
        for each in self.fit.collectors:
            self._c(each)
        return StageGraph(self.stages, tuple(self.streams))

    def _join(self, name: str, sources: list[Socket], sinks: list[Socket]) -> None:
        self.streams.append(Stream(name, tuple((each, 1) for each in sources), tuple(sinks)))

    def _a(self) -> None:
        """Stages of the panels of A: K-blocks written row by row, read tile by tile."""
        plan = self.plan
        parts, lanes = self.fit.a_parts, plan.lanes
        part_rows = plan.rows // parts
        access = Access.ROW
        filled = nest((part_rows * plan.a_slab, lanes))
        loops: tuple[LoopProgram, ...] = (
            loop(plan.a_slab, lanes),
            loop(plan.rows, plan.a_slab * lanes),
        )
        if plan.product.turned:
            # Rows of k in memory, written in blocks; columns are read.
            access, square, across = Access.COLUMN, lanes**2, plan.rows // lanes
            filled = nest((plan.a_slab, across * square), (lanes, lanes), (across, square))
            loops = (
                loop(plan.a_slab, across * square),
                loop(across, square),
                LoopProgram(lanes, stride=1),
            )
        launches = LoopProgram() if plan.resident else LoopProgram(plan.row_blocks)
        windows = LoopProgram(plan.row_blocks if plan.resident else plan.all_passes)
        for agcu, first, groups in self.fit.a_agcus:
            part = agcu if parts > 1 else 0
            self._load_a(agcu, part, first, groups)
            sinks = [Socket(f"a{group}", part) for group in range(first, first + groups)]
            self._join(f"a_load{agcu}", [Socket(f"a_load{agcu}")], sinks)
        for group in range(plan.row_par):
            owner = next(each for each in self.fit.a_agcus if each[1] <= group < each[1] + each[2])
            writes = tuple(
                Walk(
                    filled,
                    offset=part * part_rows * plan.a_slab * lanes,
                    launches=launches,
                    windows=windows,
                    slots=LoopProgram(plan.a_slabs),
                    modulus=owner[2],
                    index=group - owner[1],
                )
                for part in range(parts)
            )
            read = Walk(
                loops,
                access=access,
                launches=launches,
                windows=windows,
                repeats=LoopProgram(plan.all_passes if plan.resident else 1),
                slots=LoopProgram(plan.a_slabs),
                last_level=Level.ADDRESS + 1,
                final_level=Level.SLOTS,
            )
            self.stages[f"a{group}"] = Hold(
                plan.a_bytes, plan.product.fmt.bits // 8, writes, (read,)
            )
            pcus = (pcu_name(group, column) for column in range(plan.col_par))
            self._join(
                f"rows{group}",
                [Socket(f"a{group}")],
                [Socket(pcu, PcuInput.ACTIVATION) for pcu in pcus],
            )

    def _boxes(
        self, name: str, box: tuple[int, int], row: int = 0, column: int = 0
    ) -> tuple[Descriptor, int]:
        """Descriptor and argument of boxes of columns × rows, which a turned product exchanges."""
        if self.plan.product.turned:
            box, row, column = box[::-1], column, row
        return boxes_of(self.arrays, name, box, row, column)

    def _boxes_along(self, count: int, dimension: int, step: int) -> BoxLoop:
        """Loop over boxes along columns (0) or rows (1), which a turned product exchanges."""
        return BoxLoop(count, 1 - dimension if self.plan.product.turned else dimension, step)

    def _load_a(self, agcu: int, part: int, first: int, groups: int) -> None:
        plan = self.plan
        rows = plan.rows // self.fit.a_parts
        loops = [self._boxes_along(plan.row_blocks, 1, plan.block_rows)]
        if not plan.resident:
            loops.append(BoxLoop(plan.all_passes))
        loops += [
            self._boxes_along(plan.a_slabs, 0, plan.a_slab * plan.lanes),
            self._boxes_along(groups, 1, plan.rows),
        ]
        box = (plan.a_slab * plan.lanes, rows)
        start = first * plan.rows + part * rows
        self.stages[f"a_load{agcu}"] = Load(
            agcu,
            _stream(agcu, 0),
            *self._boxes(plan.product.a, box, start),
            tuple(loops),
            _A_PORT,
        )

    def _b(self) -> None:
        """Stages of the blocks of B: written by rows of k, read by columns, C per grid column."""
        plan = self.plan
        lanes, square = plan.lanes, plan.lanes**2
        across = plan.columns // lanes
        parts = len(self.fit.b_agcus)
        if plan.product.turned:
            self._b_rows()
            return
        # Two writers share a slot by tiles, or, where it has one, by rows of the tile.
        tiles, rows = plan.b_slab, lanes
        if parts > 1:
            tiles, rows = (tiles // parts, rows) if tiles > 1 else (tiles, rows // parts)
        launches = LoopProgram(plan.row_blocks)
        windows = LoopProgram(plan.col_blocks * plan.halves)
        slots = LoopProgram(plan.b_slabs)
        writes = []
        for part, agcu in enumerate(self.fit.b_agcus):
            writes.append(
                Walk(
                    nest((tiles, across * square), (rows, lanes), (across, square)),
                    offset=part * (tiles * across * square if plan.b_slab > 1 else rows * lanes),
                    launches=launches,
                    windows=windows,
                    slots=slots,
                )
            )
            self._load_b(agcu, part)
            self._join(f"b_load{agcu}", [Socket(f"b_load{agcu}")], [Socket("b", part)])
        width, columns = min(lanes, plan.pass_columns), plan.config.grid_columns
        loops = (
            *nest(
                (plan.b_slab, across * square),
                (plan.pass_columns // width, square),
                (width // columns, columns),
            ),
            LoopProgram(columns, stride=1),
        )
        read = Walk(
            loops,
            access=Access.COLUMN,
            launches=launches,
            windows=windows,
            repeats=loop(plan.passes, plan.pass_stride // lanes * square),
            slots=slots,
            last_level=Level.ADDRESS + len(loops) - 1,
        )
        element = plan.product.fmt.bits // 8
        self.stages["b"] = Hold(plan.b_bytes, element, tuple(writes), (read,))
        self._weights()

    def _b_rows(self) -> None:
        """Stages of the blocks of B of a turned product: rows in memory are columns of weights."""
        plan, (agcu,) = self.plan, self.fit.b_agcus
        columns, row = plan.config.grid_columns, plan.b_slab * plan.lanes
        # Held for all blocks of rows, B is read once for each.
        blocks, again = (1, plan.row_blocks) if plan.b_kept else (plan.row_blocks, plan.passes)
        outer = LoopProgram(blocks), LoopProgram(plan.col_blocks), LoopProgram(plan.b_slabs)
        loops = (
            *nest((plan.b_slab, plan.lanes), (plan.col_par, columns * row)),
            LoopProgram(columns, stride=row),
        )
        write = Walk(
            nest((plan.columns * plan.b_slab, plan.lanes)),
            launches=outer[0],
            windows=outer[1],
            slots=outer[2],
        )
        read = Walk(
            loops,
            launches=outer[0],
            windows=outer[1],
            repeats=loop(again, 0 if plan.b_kept else plan.pass_stride * row),
            slots=outer[2],
            last_level=Level.ADDRESS + len(loops) - 1,
        )
        element = plan.product.fmt.bits // 8
        self.stages["b"] = Hold(plan.b_bytes, element, (write,), (read,))
        self._load_b(agcu, 0)
        self._join(f"b_load{agcu}", [Socket(f"b_load{agcu}")], [Socket("b")])
        self._weights()

    def _weights(self) -> None:
        """Stream of weights to all PCUs."""
        plan = self.plan
        self._join(
            "weights",
            [Socket("b")],
            [
                Socket(pcu_name(group, column), PcuInput.WEIGHT)
                for group in range(plan.row_par)
                for column in range(plan.col_par)
            ],
        )

    def _load_b(self, agcu: int, part: int) -> None:
        plan = self.plan
        rows = plan.b_slab * plan.lanes // len(self.fit.b_agcus)
        self.stages[f"b_load{agcu}"] = Load(
            agcu,
            _stream(agcu, 1),
            *self._boxes(plan.product.b, (plan.columns, rows), part * rows),
            (
                BoxLoop(1 if plan.b_kept else plan.row_blocks),
                self._boxes_along(plan.col_blocks, 0, plan.columns),
                self._boxes_along(plan.halves, 0, plan.pass_columns),
                self._boxes_along(plan.b_slabs, 1, plan.b_slab * plan.lanes),
            ),
            self.b_port,
        )

    def _c(self, collector: Collector) -> None:
        """Stages of the blocks of C: written in the order of results, read by rows."""
        plan, pieces = self.plan, self.fit.pieces
        lanes, columns = plan.out_lanes, plan.config.grid_columns
        rows, held = plan.rows // pieces, plan.held_rows // pieces
        vectors = plan.result_vectors // pieces
        # All rows of one column of vectors lie one after the other.
        column_stride = collector.groups * held * lanes
        per_vector = lanes // columns

        def position(group_of_columns: int) -> int:
            quotient, rest = divmod(group_of_columns, per_vector)
            return quotient * column_stride + rest * columns

        launches, slots = LoopProgram(plan.row_blocks), LoopProgram(pieces)
        windows = LoopProgram(plan.col_blocks * plan.c_blocks)
        row_stride = (2 if plan.packed else 1) * lanes
        writes = []
        for number, (start, count) in enumerate(collector.ports):
            first, taken = (0, collector.columns) if collector.by_rows else (start, count)
            row_first, row_count = (start, count) if collector.by_rows else (0, collector.groups)
            inner = min(taken, per_vector)
            across = ((taken // inner, position(per_vector)), (inner, position(1)))
            if plan.one_pass:
                walked = nest((vectors, row_stride), *across, (row_count, held * lanes))
            else:
                walked = nest(
                    (plan.halves // plan.c_blocks, position(plan.col_par)),
                    (plan.passes, position(plan.pass_stride // columns)),
                    *across,
                    (row_count * vectors, row_stride),
                )
            writes.append(
                Walk(
                    walked,
                    offset=position(first) + row_first * held * lanes,
                    access=Access.TWO_ROWS if plan.packed else Access.ROW,
                    launches=launches,
                    windows=windows,
                    slots=slots,
                )
            )
            sources = [
                Socket(
                    pcu_name(collector.first + row_first + row, collector.column + first + column),
                    PcuOutput.RESULT,
                )
                for column in range(taken)
                for row in range(row_count)
            ]
            self._join(
                f"{collector.name}_results{number}", sources, [Socket(collector.name, number)]
            )
        parts = plan.col_par // collector.columns
        stored = plan.stored_columns if parts == 1 else plan.c_columns // parts
        loops: tuple[LoopProgram, ...] = (
            loop(collector.groups, held * lanes),
            loop(rows, lanes),
            loop(stored // lanes, column_stride),
        )
        if plan.product.turned:
            # A row in memory is a column of the slot.
            inner = min(stored, lanes)
            loops = (
                loops[0],
                loop(ceil_div(stored, lanes), column_stride),
                loop(inner, 1),
                loop(rows // lanes, lanes**2),
            )
        read = Walk(
            loops,
            access=Access.COLUMN if plan.product.turned else Access.ROW,
            last_level=Level.ADDRESS + len(loops) - 2,
            launches=launches,
            windows=windows,
            slots=slots,
        )
        size = plan.c_bytes(collector.groups, collector.columns, pieces)
        element = plan.product.out.bits // 8
        self.stages[collector.name] = Hold(size, element, tuple(writes), (read,))
        self._store_c(collector, stored, rows)

    def _store_c(self, collector: Collector, stored: int, rows: int) -> None:
        """Store of boxes of stored columns and some rows from the slots of a result writer."""
        plan, pieces = self.plan, self.fit.pieces
        store = f"{collector.name}_store"
        self.stages[store] = Store(
            collector.agcu,
            0,
            *self._boxes(
                plan.product.c,
                (stored, rows),
                collector.first * plan.rows,
                collector.column * plan.config.grid_columns,
            ),
            (
                self._boxes_along(plan.row_blocks, 1, plan.block_rows),
                self._boxes_along(plan.col_blocks, 0, plan.columns),
                self._boxes_along(plan.c_blocks, 0, plan.pass_columns),
                self._boxes_along(pieces, 1, rows),
                self._boxes_along(collector.groups, 1, plan.rows),
            ),
        )
        self._join(store, [Socket(collector.name)], [Socket(store)])
