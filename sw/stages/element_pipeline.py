"""Pipelines of element math without reductions: vectors dealt out to chains of PCUs.

A tile passes row by row. Each PCU of a chain runs one phase on a packet of as many elements as the
largest vector has. Copies of the chain take packets in turn, and their results are merged in the
same turn, so they leave in the order in which a box of the result is stored.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from hw.arch.config import ChipConfig
from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level
from hw.numeric.division import ceil_div
from sw.array_spec import ArraySpec
from sw.epilogue.collector import MERGED
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import Unfit, require_count, unfit
from sw.prologue.lane_chains import LaneChains, packet_elements
from sw.stages.pipeline import Pipeline, PipelineParts, on_grids
from sw.stages.region import Region
from sw.stages.stage_graph import Hold, Socket, Walk, boxes_of

__all__ = ["element_pipelines"]

#: Elements of a slot: large enough for whole bursts, small enough to begin soon.
_SLOT_ELEMENTS = 2048


def element_pipelines(
    region: Region, codes: tuple[LaneCode, ...], arrays: tuple[ArraySpec, ...], config: ChipConfig
) -> Iterator[Pipeline | Unfit]:
    """Pipelines for a region without reductions, those with most PCUs first.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
        Chain of lane programs of one phase each.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig

    Returns
    -------
    iterator of Pipeline or Unfit
        Why a choice does not fit, in its place.
    """

    def build(lines: int, copies: int) -> Pipeline:
        return _Builder(region, codes, arrays, config, lines, copies).pipeline()

    return on_grids(config, len(codes), MERGED, build)


@dataclasses.dataclass(frozen=True)
class _Shape:
    """Blocks of a tensor: elements per packet, columns and rows per block, blocks each way."""

    packet: int
    columns: int
    rows: int
    across: int
    down: int

    @property
    def packets(self) -> int:
        """Packets per block."""
        return self.rows * self.columns // self.packet


def _shape(region: Region, packet: int, lines: int, copies: int, most: int) -> _Shape:
    """Blocks for packets of some elements, at most so many elements each.

    The packets of a block are a multiple of the copies, so that each block begins with the first.
    """
    chunks = ceil_div(region.columns, packet)
    across = ceil_div(chunks * packet, min(MAX_BOX, max(packet, most)))
    columns = ceil_div(chunks, across) * packet
    step = copies // math.gcd(copies, columns // packet)
    wanted = min(most // columns, MAX_BOX, ceil_div(region.rows, lines))
    rows = min(max(ceil_div(wanted, step) * step, step), MAX_BOX // step * step)
    return _Shape(packet, columns, rows, across, ceil_div(region.rows, rows))


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
        formats = [form for code in codes for form in code.formats.values()]
        packet = packet_elements(codes, config)
        bytes_each = max(form.bits // 8 for form in formats)
        most = min(_SLOT_ELEMENTS, config.pmu.capacity_bytes // 4 // bytes_each)
        self.shape = _shape(region, packet, lines, copies, most)
        self.lines = min(lines, self.shape.down)
        results = len(region.outputs)
        if results > 1 and self.lines * results > config.agcu.count:
            # Those that share one take turns, and no buffer holds what waits.
            rule = f"be at most {config.agcu.count}, an AGCU each"
            raise unfit("Store streams of results without a buffer", rule, self.lines * results)

    def pipeline(self) -> Pipeline:
        shape = self.shape
        require_count("blocks of rows", shape.down)
        require_count("blocks of columns", shape.across)
        for line in range(self.lines):
            blocks = ceil_div(shape.down - line, self.lines)
            chains = LaneChains(self.parts, self.codes, line, self.copies, self.region.inputs)
            for name in self.region.inputs:
                self._input(line, blocks, name, chains.takers(name))
            chains.add()
            for number, (value, tensor) in enumerate(self.region.outputs.items()):
                self._output(line, blocks, number, tensor, chains.results(value))
        count = f"{self.lines * self.copies} chains of {len(self.codes)} PCUs"
        return self.parts.done(
            f"{count}, {shape.down} x {shape.across} blocks of {shape.rows} x {shape.columns}, "
            f"packets of {shape.packet}",
            shape.rows,
            shape.columns,
        )

    def _loops(self, blocks: int) -> list[BoxLoop]:
        step = self.shape.rows * self.lines
        return [
            BoxLoop(blocks, 1, step if blocks > 1 else 0),
            BoxLoop(self.shape.across, 0, self.shape.columns if self.shape.across > 1 else 0),
        ]

    def _input(self, line: int, blocks: int, value: str, takers: list[Socket]) -> None:
        shape, source = self.shape, self.region.inputs[value]
        form = source.type.format
        vector = self.parts.vector(form)
        vectors = shape.packet // vector
        name = f"line{line}_{value}".replace("%", "")
        launches, windows = LoopProgram(blocks), LoopProgram(shape.across)
        write = Walk(
            (LoopProgram(shape.packets * vectors, stride=vector),),
            launches=launches,
            windows=windows,
        )
        read = Walk(
            (
                LoopProgram(shape.packets, stride=shape.packet),
                LoopProgram(vectors, stride=vector if vectors > 1 else 0),
            ),
            launches=launches,
            windows=windows,
            last_level=Level.ADDRESS + 1 if vectors > 1 else ENGINE_LOOPS,
        )
        slot = shape.rows * shape.columns * form.bits // 8
        hold = Hold(slot, form.bits // 8, (write,), (read,))
        self.parts.hold(name, hold, wanted=4, rate=1.0, alignment=2, tokens=True)
        tensor = boxes_of(
            self.arrays, source.tensor, (shape.columns, shape.rows), line * shape.rows
        )
        self.parts.load(f"{name}_load", line, tensor, self._loops(blocks), [Socket(name)])
        self.parts.join(f"{name}_packets", [(Socket(name), 1)], takers)

    def _output(
        self, line: int, blocks: int, result: int, tensor: str, sources: list[tuple[Socket, int]]
    ) -> None:
        shape = self.shape
        agcu = line * len(self.region.outputs) + result
        box = boxes_of(self.arrays, tensor, (shape.columns, shape.rows), line * shape.rows)
        self.parts.store(f"line{line}_{tensor}_store", agcu, box, self._loops(blocks), sources)
