"""Pipelines of element math with rows on lanes: row statistics, and vectors along the columns.

A group of rows lies in a slot, as many as the source has elements per vector, and is read column by
column: a packet has a vector per column. The first PCU of a chain may read the packet several
times, a phase each; the others take its results column by column. The result's columns are
collected in a buffer, from which rows are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX, Descriptor
from hw.arch.lanes.phase_word import AuxiliaryUse
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuInput, PcuOutput
from hw.arch.pmu_word import ADDRESS_LOOPS, ENGINE_LOOPS, Access, Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit
from sw.stages.lane_code import LaneCode
from sw.stages.long_rows import pieces_of, rows_of, vector_of
from sw.stages.pipeline import MERGED, Pipeline, PipelineParts, require_count
from sw.stages.region import Part, Region
from sw.stages.stage_graph import Hold, Socket, Walk, boxes_of

__all__ = ["row_pipelines"]


def row_pipelines(
    region: Region, codes: tuple[LaneCode, ...], arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> Iterator[Pipeline | Unfit]:
    """Pipelines for a region with rows on lanes, those with most PCUs first.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
        Chain of lane programs; all but the first have one phase, of the result before.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig

    Yields
    ------
    Pipeline or Unfit
        Why a choice does not fit, in its place.
    """
    problem = _unserved(region, codes)
    if problem:
        yield problem
        return
    grids = [
        (lines, copies)
        for lines in range(1, config.agcu.count + 1)
        for copies in range(1, 2 * MERGED + 1)
        if lines * copies * len(codes) <= config.pcu_count
    ]
    if not grids:
        yield Unfit(
            f"A chain of {len(codes)} lane programs must fit the chip's {config.pcu_count} PCUs",
            value=len(codes),
            rule=f"at most {config.pcu_count} PCUs",
        )
    for lines, copies in sorted(grids, key=lambda each: (-each[0] * each[1], -each[0])):
        try:
            yield _Builder(region, codes, arrays, config, lines, copies).pipeline()
        except Unfit as problem:
            yield problem


def _unserved(region: Region, codes: Sequence[LaneCode]) -> Unfit | None:
    """Why a chain of lane programs is none that these pipelines serve."""
    given: str | None = None
    for number, code in enumerate(codes):
        made = [each.result for each in code.phases if each.result is not None]
        taken = {each.auxiliary for each in code.phases if each.auxiliary is not None}
        if len(made) != 1:
            rule = "one result per lane program"
            return Unfit(f"Results must be {rule}, not {len(made)}", value=len(made), rule=rule)
        if not taken <= set(region.inputs):
            rule = "auxiliary streams from memory"
            return Unfit(
                f"Element math must have {rule}, not a temporary", value=len(taken), rule=rule
            )
        if number and (code.source != given or code.packet_phases != 1):
            rule = "a chain in which each lane program takes the result before"
            return Unfit(f"Element math must be {rule}", value=number, rule=rule)
        given = made[0]
    if set(region.outputs) != {given}:
        rule = "one result, the last one"
        return Unfit(f"Element math must store {rule}", value=len(region.outputs), rule=rule)
    return None


def _loop(count: int, stride: int) -> LoopProgram:
    return LoopProgram(count, stride=stride if count > 1 else 0)


def _nest(*loops: LoopProgram) -> tuple[LoopProgram, ...]:
    """Address loops, of which those of one iteration are left out if there are too many."""
    if len(loops) > ADDRESS_LOOPS:
        loops = tuple(each for each in loops if each != LoopProgram())
    if len(loops) > ADDRESS_LOOPS:
        rule = f"at most {ADDRESS_LOOPS} address loops"
        raise Unfit(f"Walk must have {rule}, not {len(loops)}", value=len(loops), rule=rule)
    return loops


def _columns(count: int, vector: int) -> tuple[LoopProgram, ...]:
    """Outermost address loops over columns of blocks of vector × vector elements, in order."""
    full, tail = divmod(count, vector)
    block = vector**2
    if not full:
        return (_loop(tail, 1),)
    if not tail:
        return (_loop(full, block), LoopProgram(vector, stride=1))
    # The first step covers the whole blocks, the second one the columns behind them.
    whole = Level.ADDRESS.value
    within = LoopProgram(vector, stride=1, slope=tail - vector, outer=whole)
    if full == 1:
        return (LoopProgram(2, stride=block), within)
    blocks = LoopProgram(full, stride=block, slope=1 - full, outer=whole)
    return (LoopProgram(2, stride=full * block), blocks, within)


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
        #: Rows of a group: positions of a vector of the source.
        self.group = self.parts.vector(codes[0].formats[codes[0].source])
        blocks = ceil_div(region.rows, self.group * copies)
        self.lines = min(lines, blocks)
        # Streams that all lines share take as many packets in each: some last blocks lie outside.
        self.blocks = ceil_div(blocks, self.lines)
        require_count("blocks of rows", self.blocks)
        if self.group * copies > MAX_BOX:
            rule = f"at most {MAX_BOX} rows"
            raise Unfit(
                f"Rows of a block must be {rule}, not {self.group * copies}",
                value=self.group * copies,
                rule=rule,
            )

    def pipeline(self) -> Pipeline:
        rows = self.group * self.copies
        for line in range(self.lines):
            for value, source in self.region.inputs.items():
                if source.part is Part.BLOCK:
                    self._block(line, value)
            for number in range(len(self.codes)):
                for copy in range(self.copies):
                    self._code(line, number, copy)
            self._output(line)
        for value, source in self.region.inputs.items():
            if source.part is Part.ROW:
                self._row(value)
        return self.parts.done(
            f"{self.lines * self.copies} chains of {len(self.codes)} PCUs, {self.blocks} blocks of "
            f"{rows} rows each, {self.group} rows per vector, packets of {self.region.columns} "
            "columns",
            rows,
            self.region.columns,
        )

    def _block(self, line: int, value: str) -> None:
        """Buffers of a tensor's rows, one per copy: written by rows, read by columns."""
        form = self.region.inputs[value].type.format
        vector, columns = self.parts.vector(form), self.region.columns
        if vector != self.group:
            rule = f"{self.group} elements per vector, as the source"
            raise Unfit(f"Tensors must have {rule}, not {vector}", value=vector, rule=rule)
        chunks = ceil_div(columns, vector)
        across = _columns(columns, vector)
        sinks = []
        for copy in range(self.copies):
            phases = [
                each for each in self.codes[0].phases if value in (each.source, each.auxiliary)
            ]
            write = Walk(
                (_loop(vector, vector), _loop(chunks, vector**2)),
                windows=LoopProgram(self.blocks),
                modulus=self.copies,
                index=copy,
            )
            read = Walk(
                across,
                access=Access.COLUMN,
                windows=LoopProgram(self.blocks),
                repeats=LoopProgram(len(phases)),
                last_level=Level.ADDRESS,
            )
            name = f"line{line}_{value}_{copy}"
            hold = Hold(
                vector * chunks * vector * form.bits // 8, form.bits // 8, (write,), (read,)
            )
            self.parts.hold(name, hold, wanted=2, rate=0.2, alignment=vector, tokens=True)
            sinks.append(Socket(name))
            takers = [
                Socket(_pcu(line, 0, copy), port)
                for port, taken in (
                    (PcuInput.ACTIVATION, self.codes[0].source),
                    (PcuInput.AUXILIARY, next((each.auxiliary for each in phases), None)),
                )
                if taken == value
            ]
            self.parts.join(f"{name}_columns", [(Socket(name), 1)], takers)
        step = self.group * self.copies
        tensor = self._rows_of(value, chunks * vector, line * step)
        dimension = tensor[0].rank - 1
        loops = [
            BoxLoop(self.blocks, dimension, step * self.lines if self.blocks > 1 else 0),
            BoxLoop(self.copies, dimension, self.group if self.copies > 1 else 0),
        ]
        self.parts.load(f"line{line}_{value}_load", line, tensor, loops, sinks)

    def _rows_of(self, value: str, columns: int, row: int) -> tuple[Descriptor, int]:
        """Boxes of a group of whole rows, ``columns`` wide, and the launch argument."""
        name = self.region.inputs[value].tensor
        if columns <= MAX_BOX:
            return boxes_of(self.arrays, name, (columns, self.group), row)
        pieces = pieces_of(columns, self.group)
        return rows_of(self.arrays, name, pieces, self.group, row)

    def _row(self, value: str) -> None:
        """Buffer of a vector along the columns, given to all PCUs that take it."""
        source = self.region.inputs[value]
        form = source.type.format
        vector, columns = self.parts.vector(form), self.region.columns
        number, code = next(
            (number, code)
            for number, code in enumerate(self.codes)
            if any(each.auxiliary == value for each in code.phases)
        )
        uses = [each for each in code.phases if each.auxiliary == value]
        if any(each.phase.auxiliary is not AuxiliaryUse.SPREAD for each in uses):
            rule = "one element per column"
            raise Unfit(f"Vector `{source.tensor}` must be {rule}", value=len(uses), rule=rule)
        chunks = ceil_div(columns, vector)
        repeats = LoopProgram(self.blocks * len(uses))
        require_count("passes over a vector", repeats.base)
        # Vectors of the source per column: each takes an element.
        each_column = self.group // self.parts.vector(code.formats[code.source])
        if each_column == 1:
            write = Walk((_loop(chunks, vector),))
            read = Walk((_loop(chunks, vector),), repeats=repeats, last_level=Level.ADDRESS)
            slot = chunks * vector
        else:
            write = Walk((_loop(each_column, 1), _loop(chunks, vector**2)), access=Access.COLUMN)
            read = Walk((_loop(columns, vector),), repeats=repeats, last_level=ENGINE_LOOPS)
            slot = chunks * vector**2
        name = f"{value}_row"
        hold = Hold(slot * form.bits // 8, form.bits // 8, (write,), (read,))
        self.parts.hold(name, hold, wanted=1, rate=0.2, alignment=vector, tokens=True)
        tensor = vector_of(self.arrays, source.tensor, columns, vector, each_column)
        self.parts.load(f"{name}_load", self.lines - 1, tensor, [BoxLoop(1)], [Socket(name)])
        takers = [
            Socket(_pcu(line, number, copy), PcuInput.AUXILIARY)
            for line in range(self.lines)
            for copy in range(self.copies)
        ]
        self.parts.join(f"{name}_elements", [(Socket(name), 1)], takers)

    def _code(self, line: int, number: int, copy: int) -> None:
        code = self.codes[number]
        name = _pcu(line, number, copy)
        made = next(each.result for each in code.phases if each.result is not None)
        per_column = self.group // self.parts.vector(code.formats[made])
        if not per_column:
            rule = f"at most {self.group} elements per vector, as the source"
            value = self.parts.vector(code.formats[made])
            raise Unfit(f"Results must have {rule}, not {value}", value=value, rule=rule)
        last = number == len(self.codes) - 1
        self.parts.lanes(name, code, {}, cut=per_column if last or per_column > 1 else 0)
        if not last:
            sinks = [Socket(_pcu(line, number + 1, copy), PcuInput.ACTIVATION)]
            self.parts.join(f"{name}_results", [(Socket(name, PcuOutput.RESULT), 1)], sinks)

    def _output(self, line: int) -> None:
        """Buffer of the result: columns of all copies in turn, read by rows."""
        (tensor,) = self.region.outputs.values()
        form = self.region.formats[tensor]
        vector, columns = self.parts.vector(form), self.region.columns
        halves = self.group // vector
        wide, boxes = _boxes(columns, vector)
        # A slot holds a box of whole blocks, or whole rows if the last box is narrower.
        slots = boxes if wide * boxes == columns else 1
        boxes //= slots
        band = boxes * wide * vector
        writers = 2 if self.copies > 1 else 1
        edges = [writer * self.copies // writers for writer in range(writers + 1)]
        writes = []
        for first, end in zip(edges, edges[1:], strict=False):
            if end - first > MERGED:
                rule = f"at most {MERGED} an input"
                raise Unfit(
                    f"Merged results must be {rule}, not {end - first}",
                    value=end - first,
                    rule=rule,
                )
            writes.append(
                Walk(
                    _nest(
                        *_columns(columns // slots, vector),
                        _loop(end - first, halves * band),
                        _loop(halves, band),
                    ),
                    offset=first * halves * band,
                    access=Access.COLUMN,
                    launches=LoopProgram(self.blocks),
                    windows=LoopProgram(slots),
                )
            )
        read = Walk(
            (
                _loop(boxes, wide // vector * vector**2),
                _loop(self.copies * halves, band),
                _loop(vector, vector),
                _loop(wide // vector, vector**2),
            ),
            launches=LoopProgram(self.blocks),
            windows=LoopProgram(slots),
            last_level=Level.ADDRESS + 1,
        )
        name = f"line{line}_{tensor}"
        slot = self.copies * halves * band * form.bits // 8
        hold = Hold(slot, form.bits // 8, tuple(writes), (read,))
        self.parts.hold(name, hold, wanted=2, rate=0.5, alignment=vector, tokens=False)
        final = len(self.codes) - 1
        for number, (first, end) in enumerate(zip(edges, edges[1:], strict=False)):
            sources = [
                (Socket(_pcu(line, final, copy), PcuOutput.RESULT), 1) for copy in range(first, end)
            ]
            self.parts.join(f"{name}_columns{number}", sources, [Socket(name, number)])
        step = self.group * self.copies
        box = boxes_of(self.arrays, tensor, (wide, step), line * step)
        loops = [
            BoxLoop(self.blocks, 1, step * self.lines if self.blocks > 1 else 0),
            BoxLoop(boxes * slots, 0, wide if boxes * slots > 1 else 0),
        ]
        self.parts.store(f"{name}_store", line, box, loops, [(Socket(name), 1)])


def _pcu(line: int, number: int, copy: int) -> str:
    """Name of the PCU of a code in a copy of a line."""
    return f"pcu{line}_{copy}_{number}"


def _boxes(columns: int, vector: int) -> tuple[int, int]:
    """Width and number of the boxes that cover a row: equal whole blocks, if they are not short."""
    if not columns % vector:
        wide, boxes = pieces_of(columns, vector)
        if boxes == 1 or wide >= MAX_BOX // 4:
            return wide, boxes
    boxes = ceil_div(columns, MAX_BOX)
    wide = ceil_div(ceil_div(columns, boxes), vector) * vector
    return wide, ceil_div(columns, wide)
