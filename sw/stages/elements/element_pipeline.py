"""Pipelines of element math without reductions: vectors dealt out to chains of PCUs.

A tile passes row by row. Each PCU of a chain runs one phase on a packet of as many elements as the
largest vector has, or joined phases on a strip of them. Copies of the chain take packets in turn,
and their results are merged in the same turn, so they leave in the order in which a box of the
result is stored.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator

from hw.arch.config import ChipConfig
from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import Level
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.fabric.merges import MERGED
from sw.lane_codes.lane_code import LaneCode
from sw.passes.field_limits import Unfit, require_count, unfit
from sw.prologue.lane_chains import LaneChains
from sw.search.best_first import BestFirst
from sw.stages.elements.element_blocks import block_cycles, element_blocks, least_cycles
from sw.stages.elements.element_inputs import ElementInput
from sw.stages.grids import Grid, grids, opened
from sw.stages.pipeline import Pipeline, PipelineParts
from sw.stages.region import Region
from sw.stages.segment_digits import in_segments
from sw.stages.stage_graph import Hold, Socket, Walk

__all__ = ["element_pipelines"]


def element_pipelines(
    region: Region,
    codes: tuple[LaneCode, ...],
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    *,
    in_order: bool,
) -> Iterator[Pipeline | Unfit]:
    """Pipelines for a region without reductions, by their estimated cycles.

    Parameters
    ----------
    region : Region
    codes : tuple of LaneCode
        Chain of lane programs, each of phases that take a packet together.
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    in_order : bool
        Whether the order matters: else those of few PCUs come first.

    Yields
    ------
    Pipeline or Unfit
        Why a choice does not fit, behind those that fit.
    """
    problems: dict[int, Unfit] = {}
    try:
        choices = grids(config, len(codes), 2 * MERGED)
    except Unfit as problem:
        yield problem
        return

    def begun(number: int) -> list[tuple[float, int, _Builder]]:
        build = functools.partial(_Builder, region, codes, arrays, config, choices[number], number)
        return opened(number, build, problems)

    builders: Iterable[_Builder]
    if in_order:
        builders = BestFirst(
            (least_cycles(region, codes, config, each), number, functools.partial(begun, number))
            for number, each in enumerate(choices)
        )
    else:
        numbers = reversed(range(len(choices)))
        builders = (each for number in numbers for *_, each in begun(number))
    for builder in builders:
        try:
            pipeline = builder.pipeline()
        except Unfit as problem:
            problems[builder.number] = problem
        else:
            yield pipeline
    yield from (problems[number] for number in sorted(problems))


class _Builder:
    """Puts a pipeline of element math together.

    Parameters
    ----------
    region, codes, arrays, config
        As of `element_pipelines`.
    grid : Grid
        Of at most so many lines.
    number : int
        Of the choice.

    Raises
    ------
    Unfit
        If no blocks fit.
    """

    def __init__(
        self,
        region: Region,
        codes: tuple[LaneCode, ...],
        arrays: tuple[ArraySpec, ...],
        config: ChipConfig,
        grid: Grid,
        number: int,
    ) -> None:
        self.region, self.codes, self.number = region, codes, number
        self.parts = PipelineParts(config)
        self.copies = grid.copies
        self.blocks = element_blocks(region, codes, arrays, config, grid.lines, grid.copies)
        self.lines = self.blocks.lines
        results = len(region.outputs)
        if results > 1 and self.lines * results > config.agcu.count:
            # Those that share one take turns, and no buffer holds what waits.
            rule = f"be at most {config.agcu.count}, an AGCU each"
            raise unfit("Store streams of results without a buffer", rule, self.lines * results)
        #: Estimate, as of `Pipeline`.
        self.cycles = block_cycles(self.blocks, region, codes, config, self.copies)

    def pipeline(self) -> Pipeline:
        blocks = self.blocks
        require_count("blocks of rows", blocks.down)
        require_count("blocks of columns", blocks.across)
        for line in range(self.lines):
            chains = LaneChains(self.parts, self.codes, line, self.copies, self.region.inputs)
            for name in self.region.inputs:
                self._input(line, name, chains.takers(name))
            chains.add()
            for number, (value, tensor) in enumerate(self.region.outputs.items()):
                self._output(line, number, tensor, chains.results(value))
        count = f"{self.lines * self.copies} chains of {len(self.codes)} PCUs"
        whole = self.parts.done(
            f"{count}, {blocks.down} x {blocks.across} blocks of {blocks.rows} x {blocks.columns}, "
            f"packets of {blocks.packet}",
            blocks.rows,
            blocks.columns,
        )
        return dataclasses.replace(whole, cycles=self.cycles)

    def _input(self, line: int, value: str, takers: list[Socket]) -> None:
        """Buffer of an input for the chains of a line, and its load; the last one for all lines."""
        source = self.region.inputs[value]
        each = ElementInput(self.blocks, source, self.parts.config)
        element = source.type.format.bits // 8
        least, wanted = each.slots
        names = [f"line{number}_{value}".replace("%", "") for number in range(line + 1)]
        self.parts.hold(
            names[line],
            Hold(each.slot * element, element, (each.write(line),), (each.read(line),)),
            least=least,
            wanted=wanted,
            rate=1.0,
            alignment=each.alignment,
            tokens=True,
        )
        filled = names if each.common else names[line:]
        if not each.common or line == self.lines - 1:
            sinks = [Socket(name) for name in filled]
            box, loops = each.boxes(line)
            self.parts.load(f"{filled[0]}_load", line, box, loops, sinks, takers=len(sinks))
        self.parts.join(f"{names[line]}_packets", [(Socket(names[line]), 1)], takers)

    def _output(
        self, line: int, result: int, tensor: str, sources: list[tuple[Socket, int]]
    ) -> None:
        agcu = line * len(self.region.outputs) + result
        row, _ = self.blocks.place(line)
        box, loops = in_segments(self.blocks.arrays, *self.blocks.boxes(line, tensor), row)
        name = f"line{line}_{tensor}"
        if len(sources) > MERGED:
            self._collect(line, name, self.region.formats[tensor], sources)
            sources = [(Socket(name), 1)]
        self.parts.store(f"{name}_store", agcu, box, loops, sources)

    def _collect(
        self, line: int, name: str, form: Format, sources: list[tuple[Socket, int]]
    ) -> None:
        """Buffer of results, each half of the copies at a write engine of its own."""
        blocks, vector = self.blocks, self.parts.vector(form)
        launches, windows = map(LoopProgram, blocks.counts(line))
        edges = 0, self.copies // 2, self.copies
        writes = []
        for number, (first, end) in enumerate(itertools.pairwise(edges)):
            turns = (
                LoopProgram(blocks.packets // self.copies, stride=self.copies * blocks.packet),
                LoopProgram(end - first, stride=blocks.packet),
                LoopProgram(blocks.packet // vector, stride=vector),
            )
            writes.append(
                Walk(turns, offset=first * blocks.packet, launches=launches, windows=windows)
            )
            self.parts.join(f"{name}_packets{number}", sources[first:end], [Socket(name, number)])
        read = Walk(
            (LoopProgram(blocks.packets * blocks.packet // vector, stride=vector),),
            launches=launches,
            windows=windows,
            last_level=Level.ADDRESS,
        )
        slot = blocks.rows * blocks.columns * form.bits // 8
        hold = Hold(slot, form.bits // 8, tuple(writes), (read,))
        self.parts.hold(name, hold, wanted=2, rate=0.5, alignment=vector, tokens=False)
