"""Stage graph of a product of matrices: loads and buffers of A and B, a PCU grid, buffers of C."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hw.arch.descriptor import Descriptor
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.words.pmu_word import Level
from sw.array_spec import ArraySpec
from sw.epilogue.collector import Collector, stored_columns
from sw.epilogue.epilogue_graph import EpilogueGraph
from sw.epilogue.result_boxes import ResultBoxes
from sw.epilogue.result_walks import ResultWalks
from sw.passes.fit import Fit
from sw.passes.plan import Plan
from sw.stages.operand_slot import OperandSlot
from sw.stages.operand_walks import (
    access_of,
    half_columns,
    pass_loop,
    split_loops,
    stationary_loops,
    streaming_loops,
    tile_loop,
    vector_loops,
    written_part,
)
from sw.stages.segment_digits import in_segments
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
    segmented_boxes,
)
from sw.stages.walk_loops import loop

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


def _lines(slot: OperandSlot, count: int, step: int) -> BoxLoop:
    """Loop over boxes along the lines of an operand."""
    return BoxLoop(count, int(slot.along_k), step)


def _terms(slot: OperandSlot, count: int) -> BoxLoop:
    """Loop over boxes along k."""
    return BoxLoop(count, int(not slot.along_k), slot.terms)


class _Builder:
    def __init__(self, plan: Plan, places: Fit, arrays: tuple[ArraySpec, ...]) -> None:
        self.plan = plan
        self.fit = places
        self.b_port = 0 if plan.one_operand else 1
        self.arrays = arrays
        self.memory = ResultBoxes(plan, arrays)
        self.stages: dict[str, Stage] = {}
        self.streams: list[Stream] = []
        self.epilogue: EpilogueGraph | None = None
        if plan.product.epilogue is not None:
            pcus = {
                (group, column): pcu_name(group, column)
                for group in range(plan.row_par)
                for column in range(plan.col_par)
            }
            self.epilogue = EpilogueGraph(plan, places, arrays, pcus)

    def graph(self) -> StageGraph:
        """The complete graph."""
        if self.epilogue is not None:
            self.stages |= self.epilogue.stages
            self.streams += self.epilogue.streams
        else:
            self.stages |= self._pcus()
        self._a()
        self._b()
        for each in self.fit.collectors:
            self._c(each)
        return StageGraph(self.stages, tuple(self.streams))

    def _pcus(self) -> dict[str, Stage]:
        """PCUs whose sums are the results."""
        plan = self.plan
        return {
            pcu_name(group, column): Product(
                PcuProgram(
                    fmt=plan.product.fmt,
                    weight_fmt=plan.product.b_fmt,
                    out=plan.product.out,
                    weight=FilterProgram(len(columns), number),
                    packet_vectors=int(plan.cut),
                    by_group=plan.grouped,
                )
            )
            for columns in self._weight_columns()
            for number, column in enumerate(columns)
            for group in range(plan.row_par)
        }

    def _weight_columns(self) -> list[list[int]]:
        """Grid columns of each stream of weights: one, or one for each half of the blocks of B."""
        if self.plan.b_split:
            return [half_columns(self.plan, half) for half in (0, 1)]
        return [list(range(self.plan.col_par))]

    def _join(self, name: str, sources: list[Socket], sinks: list[Socket]) -> None:
        self.streams.append(Stream(name, tuple((each, 1) for each in sources), tuple(sinks)))

    def _a(self) -> None:
        """Stages of the panels of A: K-blocks written as they lie in memory, read tile by tile."""
        plan, slot, parts = self.plan, self.plan.a_slot, self.fit.a_parts
        launches = LoopProgram() if plan.resident else LoopProgram(plan.row_blocks)
        windows = LoopProgram(plan.row_blocks if plan.resident else plan.panel_reads)
        for agcu, first, groups in self.fit.a_agcus:
            part = agcu if parts > 1 else 0
            self._load_a(agcu, part, first, groups)
            sinks = [Socket(f"a{group}", part) for group in range(first, first + groups)]
            self._join(f"a_load{agcu}", [Socket(f"a_load{agcu}")], sinks)
        for group in range(plan.row_par):
            owner = next(each for each in self.fit.a_agcus if each[1] <= group < each[1] + each[2])
            writes = []
            for part in range(parts):
                loops, offset = written_part(slot, part, parts)
                writes.append(
                    Walk(
                        loops,
                        offset=offset,
                        launches=launches,
                        windows=windows,
                        slots=LoopProgram(plan.a_slabs),
                        modulus=owner[2],
                        index=group - owner[1],
                    )
                )
            tiles = [tile_loop(slot, plan.a_slabs, plan.spare_tiles)]
            if plan.grouped:
                # Each tile meets the weights of every pass of a column block.
                blocks = Level.REPEATS if plan.resident else Level.WINDOWS
                tiles.append(pass_loop(plan, 0, blocks))
            read = Walk(
                streaming_loops(slot, *tiles),
                access=access_of(slot),
                launches=launches,
                windows=windows,
                repeats=LoopProgram(plan.panel_reads if plan.resident else 1),
                slots=LoopProgram(plan.a_slabs),
                last_level=Level.ADDRESS + len(tiles),
                final_level=Level.SLOTS,
            )
            element = plan.product.fmt.bits // 8
            self.stages[f"a{group}"] = Hold(plan.a_bytes, element, tuple(writes), (read,))
            pcus = (pcu_name(group, column) for column in range(plan.col_par))
            self._join(
                f"rows{group}",
                [Socket(f"a{group}")],
                [Socket(pcu, PcuInput.ACTIVATION) for pcu in pcus],
            )

    def _load_a(self, agcu: int, part: int, first: int, groups: int) -> None:
        plan, slot = self.plan, self.plan.a_slot
        loops = [_lines(slot, plan.row_blocks, plan.block_rows)]
        if not plan.resident:
            loops.append(BoxLoop(plan.panel_reads))
        line = first * plan.rows
        parts = self.fit.a_parts
        within = (
            _terms(slot, plan.a_slabs // plan.product.segments),
            _lines(slot, groups, plan.rows),
        )
        boxes = self._part(plan.product.a, slot, (part, parts, line), loops, within)
        self.stages[f"a_load{agcu}"] = Load(agcu, _stream(agcu, 0), *boxes, _A_PORT)

    def _part(
        self,
        name: str,
        slot: OperandSlot,
        place: tuple[int, int, int],
        around: Sequence[BoxLoop],
        within: Sequence[BoxLoop],
    ) -> tuple[Descriptor, int, tuple[BoxLoop, ...]]:
        """Boxes of an operand: a descriptor, an argument and the loops over them.

        Known are which part it is of those that several AGCUs load, their number, the first line,
        and the loops around and within those over segments of the sum.
        """
        part, parts, line = place
        box, product = slot.box(parts), self.plan.product
        row, column = (line, 0) if slot.along_k else (0, line)
        row += part * box[1]
        if product.segments == 1:
            boxes = boxes_of(self.arrays, name, box, row, column)
            first = row if slot.along_k else column
            boxes, loops = in_segments(self.arrays, boxes, (*around, *within), first)
            return *boxes, tuple(loops)
        segments = int(slot.along_k), product.segments, product.adjacent
        tensor, number, found = segmented_boxes(self.arrays, name, box, segments, row, column)
        return tensor, number, (*around, *found, *within)

    def _b(self) -> None:
        """Stages of the blocks of B: written as they lie in memory, read C columns at a time."""
        plan, slot, parts = self.plan, self.plan.b_slot, len(self.fit.b_agcus)
        # Held for all blocks of rows, B is read once for each.
        launches = LoopProgram(1 if plan.b_kept else plan.row_blocks)
        windows = LoopProgram(plan.col_blocks * plan.halves)
        slots = LoopProgram(plan.b_slabs)
        writes = []
        for part, agcu in enumerate(self.fit.b_agcus):
            loops, offset = written_part(slot, part, parts)
            writes.append(
                Walk(loops, offset=offset, launches=launches, windows=windows, slots=slots)
            )
            self._load_b(agcu, part)
            self._join(f"b_load{agcu}", [Socket(f"b_load{agcu}")], [Socket("b", part)])
        again = loop(plan.passes // plan.together, slot.distance(plan.pass_stride))
        inside, nests = self._weight_loops()
        reads = tuple(
            Walk(
                loops,
                offset=number * plan.lanes // 2,
                access=access_of(slot),
                launches=launches,
                windows=windows,
                repeats=LoopProgram(plan.row_blocks) if plan.b_kept else again,
                slots=slots,
                last_level=Level.ADDRESS + len(loops) - 1,
                # The weights of a tile for all passes at once end a group.
                final_level=Level.ADDRESS + inside if plan.grouped else None,
            )
            for number, loops in enumerate(nests)
        )
        element = plan.product.fmt.bits // 8
        self.stages["b"] = Hold(plan.b_bytes, element, tuple(writes), reads)
        for number, columns in enumerate(self._weight_columns()):
            sinks = [
                Socket(pcu_name(group, column), PcuInput.WEIGHT)
                for group in range(plan.row_par)
                for column in columns
            ]
            name = f"weights{number}" if plan.b_split else "weights"
            self._join(name, [Socket("b", number)], sinks)

    def _weight_loops(self) -> tuple[int, list[tuple[LoopProgram, ...]]]:
        """Loops outside those over the weights of a tile, and the loops of each read of B."""
        plan, slot = self.plan, self.plan.b_slot
        tiles = tile_loop(slot, plan.b_slabs, plan.spare_tiles)
        outer = () if tiles == LoopProgram() else (tiles,)
        inside, lines = len(outer), plan.together * plan.pass_columns
        if plan.b_split:
            return inside, [split_loops(plan, half, *outer) for half in (0, 1)]
        if plan.spare_passes:
            distance, lines = slot.distance(plan.pass_columns), plan.pass_columns
            outer = (*outer, pass_loop(plan, distance, Level.WINDOWS))
        return inside, [stationary_loops(slot, outer, lines, plan.config.grid_columns)]

    def _load_b(self, agcu: int, part: int) -> None:
        plan, slot = self.plan, self.plan.b_slot
        parts = len(self.fit.b_agcus)
        loops = (
            BoxLoop(1 if plan.b_kept else plan.row_blocks),
            _lines(slot, plan.col_blocks, plan.columns),
            _lines(slot, plan.halves, plan.pass_columns),
        )
        terms = (_terms(slot, plan.b_slabs // plan.product.segments),)
        boxes = self._part(plan.product.b, slot, (part, parts, 0), loops, terms)
        self.stages[f"b_load{agcu}"] = Load(
            agcu, _stream(agcu, 1), *boxes, self.b_port, readers=1 + plan.b_split
        )

    def _c(self, collector: Collector) -> None:
        """Stages of the blocks of C: written in the order of results, read by rows."""
        plan, pieces = self.plan, self.fit.pieces
        out = plan.product.out
        walks = ResultWalks(plan, pieces, out, collector.groups)
        writes = []
        for number in range(len(collector.ports)):
            column, columns = collector.grid_columns(number)
            group, groups = collector.row_groups(number)
            walk = walks.results(
                (column - collector.column, columns), (group - collector.first, groups)
            )
            writes.append(dataclasses.replace(walk, last_level=None))
            if self.epilogue is None:
                results = [
                    Socket(pcu_name(*each), PcuOutput.RESULT) for each in collector.pcus(number)
                ]
            else:
                results = self.epilogue.results(collector, number)
            name = f"{collector.name}_results{number}"
            self._join(name, results, [Socket(collector.name, number)])
        stored = stored_columns(plan, collector.columns)
        size = plan.block_bytes(out, collector.groups, collector.columns, pieces)
        read = walks.by_rows(stored)
        self.stages[collector.name] = Hold(size, out.bits // 8, tuple(writes), (read,))
        self._store_c(collector, stored, plan.rows // pieces)

    def _store_c(self, collector: Collector, stored: int, rows: int) -> None:
        """Store of boxes of stored columns and some rows from the slots of a result writer."""
        plan, pieces = self.plan, self.fit.pieces
        store = f"{collector.name}_store"
        columns = [(plan.col_blocks, plan.columns), (plan.c_blocks, plan.pass_columns)]
        if plan.grouped:
            columns = [(plan.c_slots, plan.c_columns)]
        boxes = [self.memory.loop(count, 0, step) for count, step in columns]
        if plan.c_split:
            stored = plan.result_lanes
            boxes += (
                BoxLoop(each.base, 0, each.stride, each.slope, each.outer, each.shift)
                for each in vector_loops(plan, stored, 1, 2)
            )
        loops = (
            self.memory.loop(plan.row_blocks, 1, plan.block_rows),
            *boxes,
            self.memory.loop(pieces, 1, rows),
            self.memory.loop(collector.groups, 1, plan.rows),
        )
        place = collector.first * plan.rows, collector.column * plan.config.grid_columns
        tensor = self.memory.boxes(plan.product.c, (stored, rows), loops, *place)
        self.stages[store] = Store(collector.agcu, collector.stream, *tensor)
        self._join(store, [Socket(collector.name)], [Socket(store)])
