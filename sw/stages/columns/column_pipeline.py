"""Pipelines of element math with columns on lanes: statistics of columns.

A group of columns, as many as the source has elements per vector, passes row by row as it lies in
memory. The first PCU of a chain reads packets of whole columns, once in each of its phases; all
others run one phase on packets of single rows. Columns that are longer than a slot pass through
several, and are loaded again for each phase.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX
from hw.arch.lanes.phase_word import PhaseSource
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuInput, PcuOutput
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level
from hw.numeric.division import ceil_div
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.fabric.merges import MERGED
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import Unfit, require_count, unfit
from sw.stages.bus_cycles import bus_cycles
from sw.stages.grids import Grid, on_grids
from sw.stages.long_rows import divisor
from sw.stages.pipeline import (
    Pipeline,
    PipelineParts,
    pcu_name,
    require_first_statistics,
)
from sw.stages.region import Region, TilePart
from sw.stages.stage_graph import Hold, Socket, StageGraph, Walk, boxes_of
from sw.stages.walk_loops import loop
from sw.timing.timed_lanes import CHANGE

__all__ = ["column_pipelines"]


def column_pipelines(
    region: Region, codes: tuple[LaneCode, ...], arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> Iterator[Pipeline | Unfit]:
    """Pipelines for a region with statistics of columns, those with most PCUs first.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
        Lane programs with columns on lanes; all but the first have one phase.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig

    Returns
    -------
    iterator of Pipeline or Unfit
        Why a choice does not fit, in its place.
    """

    def build(grid: Grid) -> Pipeline:
        return _Builder(region, codes, arrays, config, grid.lines, grid.copies).pipeline()

    return on_grids(config, len(codes), MERGED, build)


class _Builder:
    def __init__(
        self,
        region: Region,
        codes: tuple[LaneCode, ...],
        arrays: tuple[ArraySpec, ...],
        config: ChipConfig,
        lines: int,
        copies: int,
    ) -> None:
        self.region, self.codes, self.arrays = region, codes, arrays
        self.parts = PipelineParts(config)
        self.copies = copies
        #: Columns of a group: positions of a vector of the source.
        self.group = self.parts.vector(codes[0].formats[codes[0].source])
        blocks = ceil_div(region.columns, self.group * copies)
        self.lines = min(lines, blocks)
        self.blocks = ceil_div(blocks, self.lines)
        require_count("blocks of columns", self.blocks)
        #: Columns of a block.
        self.wide = self.group * copies
        if self.wide > MAX_BOX:
            raise unfit("Columns of a block", f"be at most {MAX_BOX}", self.wide)
        forms = (*(each.type.format for each in region.inputs.values()), *region.formats.values())
        apart = min(self.wide * form.bits // 8 for form in forms)
        if self.lines > 1 and apart % BASE_ALIGNMENT:
            # A line's tensors begin so many bytes behind those of the line before.
            raise unfit("Bytes from line to line", f"be a multiple of {BASE_ALIGNMENT}", apart)
        require_first_statistics(codes)
        sent = sum(each.result is not None for each in codes[0].phases)
        if sent > 1:
            rule = "send its result alone, and no value for a later phase of its own"
            raise unfit("A lane program with column statistics", rule, sent)
        for source in region.inputs.values():
            if source.part is TilePart.COLUMN:
                raise unfit(
                    f"Tensor `{source.tensor}`", "have an element per column beside statistics", 1
                )
        for form in (each for code in codes for each in code.formats.values()):
            if self.parts.vector(form) > self.group:
                rule = f"be at most {self.group}, as the source"
                raise unfit("Elements per vector", rule, self.parts.vector(form))

    def pipeline(self) -> Pipeline:
        for line in range(self.lines):
            for value in self.region.inputs:
                self._input(line, value)
            for copy in range(self.copies):
                self._auxiliary(line, copy)
                for number in range(len(self.codes)):
                    self._code(line, number, copy)
            for value, tensor in self.region.outputs.items():
                self._output(line, value, tensor)
        whole = self.parts.done(
            f"{self.lines * self.copies} chains of {len(self.codes)} PCUs, {self.blocks} blocks of "
            f"{self.wide} columns each, {self.group} columns per vector, packets of "
            f"{self.region.rows} rows",
            self.region.rows,
            self.wide,
        )
        return dataclasses.replace(whole, cycles=self._cycles(whole.graph))

    def _cycles(self, graph: StageGraph) -> float:
        """Cycles, estimated: of the busiest program of a chain, or of the bus."""
        config = self.parts.config
        row = self.group / config.pcu.lanes
        passes = [
            sum(
                max(row, CHANGE) if phase.reduction.runs else row
                for phase in code.program.joined
                if phase.source is not PhaseSource.STATISTICS
            )
            for code in self.codes
        ]
        return max(self.blocks * self.region.rows * max(passes), bus_cycles(graph, config))

    def _vectors(self, form: Format) -> int:
        """Vectors of a format per row of a group."""
        return self.group // self.parts.vector(form)

    def _place(self, line: int) -> tuple[int, int]:
        """First column of a line, and columns from one of its blocks to the next."""
        return line * self.wide, self.wide * self.lines if self.blocks > 1 else 0

    def _uses(self, value: str, *, whole: bool) -> int:
        """Packets of whole columns, or of single rows, that are taken of a value in a block."""
        if not whole:
            codes = self.codes[1:]
            return int(any(value in (p.source, p.auxiliary) for c in codes for p in c.phases))
        phases = self.codes[0].phases
        source = sum(each.source == value for each in phases)
        return source or sum(each.auxiliary == value for each in phases)

    def _takers(self, line: int, copy: int, value: str) -> list[Socket]:
        """Sockets behind the first code that take a value."""
        return [
            Socket(pcu_name(line, number, copy), port)
            for number, code in enumerate(self.codes)
            for port, taken in (
                (PcuInput.ACTIVATION, code.phases[0].source),
                (PcuInput.AUXILIARY, code.phases[0].auxiliary),
            )
            if number and taken == value
        ]

    def _input(self, line: int, value: str) -> None:
        """Buffers of a tensor, for each copy, and its loads, for each way to read it."""
        source = self.region.inputs[value]
        form = source.type.format
        rows = 1 if source.part is TilePart.ROW else self.region.rows
        vectors, vector = self._vectors(form), self.parts.vector(form)
        room = self.parts.config.pmu.capacity_bytes // 4 // (self.group * form.bits // 8)
        piece = min(MAX_BOX, rows, max(room, 1))
        pieces = ceil_div(rows, piece)
        for whole in (True, False):
            uses = self._uses(value, whole=whole)
            if not uses:
                continue
            loads = 1 if pieces == 1 else uses
            require_count("pieces of columns", self.blocks * loads)
            sinks = []
            for copy in range(self.copies):
                name = _name(line, copy, value, whole=whole)
                write = Walk(
                    (loop(piece * vectors, vector),),
                    launches=LoopProgram(self.blocks * loads),
                    windows=LoopProgram(pieces),
                    modulus=self.copies,
                    index=copy,
                )
                read = self._read(rows, piece, vectors, vector, uses, whole=whole)
                hold = Hold(piece * self.group * form.bits // 8, form.bits // 8, (write,), (read,))
                self.parts.hold(name, hold, wanted=2, rate=0.2, alignment=2, tokens=True)
                sinks.append(Socket(name))
                takers = [] if whole else self._takers(line, copy, value)
                if whole and self.codes[0].source == value:
                    takers = [Socket(pcu_name(line, 0, copy), PcuInput.ACTIVATION)]
                if takers:
                    self.parts.join(f"{name}_rows", [(Socket(name), 1)], takers)
            first, step = self._place(line)
            loops = [
                BoxLoop(self.blocks, 0, step),
                *([BoxLoop(loads, 0, 0)] if loads > 1 else []),
                BoxLoop(pieces, 1, piece if pieces > 1 else 0),
                BoxLoop(self.copies, 0, self.group if self.copies > 1 else 0),
            ]
            tensor = boxes_of(self.arrays, source.tensor, (self.group, piece), column=first)
            name = f"line{line}_{value}_{'columns' if whole else 'rows'}_load"
            self.parts.load(name, line, tensor, loops, sinks)

    def _read(
        self, rows: int, piece: int, vectors: int, vector: int, uses: int, *, whole: bool
    ) -> Walk:
        """Walk over the rows of a group, in pieces, which are one packet or one each."""
        pieces = ceil_div(rows, piece)
        tail = rows - (pieces - 1) * piece
        stride = vectors * vector
        windows, slots = LoopProgram(), LoopProgram(pieces)
        each = loop(piece, stride)
        if rows < self.region.rows:
            each = loop(self.region.rows, 0)
        elif tail < piece:
            # The first step covers the whole pieces, the second one the last.
            outer = Level.WINDOWS.value
            windows, slots = LoopProgram(2), LoopProgram(pieces - 1, slope=2 - pieces, outer=outer)
            each = LoopProgram(piece, stride=stride, slope=tail - piece, outer=outer)
        inner = (loop(vectors, vector),) if vectors > 1 else ()
        single = Level.ADDRESS + 1 if inner else ENGINE_LOOPS
        return Walk(
            (each, *inner),
            launches=LoopProgram(self.blocks * (1 if pieces == 1 else uses)),
            windows=windows,
            repeats=LoopProgram(uses if pieces == 1 else 1),
            slots=slots,
            last_level=Level.WINDOWS
            if whole and pieces > 1
            else Level.ADDRESS
            if whole
            else single,
        )

    def _auxiliary(self, line: int, copy: int) -> None:
        """Auxiliary stream of the first code: packets of buffers in the order of its phases."""
        taken = [each.auxiliary for each in self.codes[0].phases if each.auxiliary is not None]
        runs = [(value, len(list(same))) for value, same in itertools.groupby(taken)]
        if len({value for value, _ in runs}) != len(runs):
            raise unfit("Turns of an auxiliary stream", "each be of another value", len(runs))
        if self.codes[0].source in taken:
            raise unfit("Uses of a source as auxiliary stream", "be 0", len(taken))
        if runs:
            sources = [
                (Socket(_name(line, copy, value, whole=True)), count) for value, count in runs
            ]
            sink = Socket(pcu_name(line, 0, copy), PcuInput.AUXILIARY)
            self.parts.join(f"{sink.stage}_auxiliary", sources, [sink])

    def _code(self, line: int, number: int, copy: int) -> None:
        code = self.codes[number]
        name = pcu_name(line, number, copy)
        made = [each.result for each in code.phases if each.result is not None][-1]
        self.parts.lanes(name, code, {}, cut=self._vectors(code.formats[made]))
        if made not in self.region.outputs:
            takers = self._takers(line, copy, made)
            self.parts.join(f"{name}_results", [(Socket(name, PcuOutput.RESULT), 1)], takers)

    def _output(self, line: int, value: str, tensor: str) -> None:
        """Store of a result, which the last PCUs of all copies send in turn."""
        final = next(
            number
            for number, code in enumerate(self.codes)
            if any(each.result == value for each in code.phases)
        )
        sources = [
            Socket(pcu_name(line, final, copy), PcuOutput.RESULT) for copy in range(self.copies)
        ]
        if self.codes[final].sends_statistic(value):
            self._row(line, tensor, sources)
        else:
            self._rows(line, tensor, sources)

    def _rows(self, line: int, tensor: str, sources: list[Socket]) -> None:
        """Store of a result of rows and columns: rows of all copies in turn."""
        high = divisor(self.region.rows, MAX_BOX)
        first, step = self._place(line)
        box = boxes_of(self.arrays, tensor, (self.wide, high), column=first)
        boxes = self.region.rows // high
        loops = [BoxLoop(self.blocks, 0, step), BoxLoop(boxes, 1, high if boxes > 1 else 0)]
        turns = [(each, 1) for each in sources]
        self.parts.store(f"line{line}_{tensor}_store", line, box, loops, turns)

    def _row(self, line: int, tensor: str, sources: list[Socket]) -> None:
        """Buffer and store of one row: statistics, which are sent with all of their positions."""
        form = self.region.formats[tensor]
        vectors, vector = self._vectors(form), self.parts.vector(form)
        packets = self.parts.config.width_bits // 16 // vector // vectors
        read = Walk((loop(self.copies * vectors, vector),), windows=LoopProgram(self.blocks))
        write = dataclasses.replace(read, modulus=packets)
        name = f"line{line}_{tensor}"
        hold = Hold(self.wide * form.bits // 8, form.bits // 8, (write,), (read,))
        self.parts.hold(name, hold, wanted=2, rate=0.2, alignment=2, tokens=False)
        turns = [(each, packets) for each in sources]
        self.parts.join(f"{name}_rows", turns, [Socket(name)])
        first, step = self._place(line)
        box = boxes_of(self.arrays, tensor, (self.wide, 1), column=first)
        loops = [BoxLoop(self.blocks, 0, step)]
        self.parts.store(f"{name}_store", line, box, loops, [(Socket(name), 1)])


def _name(line: int, copy: int, value: str, *, whole: bool) -> str:
    """Name of a copy's buffer of a value, by the packets that are read."""
    return f"line{line}_{value}_{copy}" + ("" if whole else "_rows")
