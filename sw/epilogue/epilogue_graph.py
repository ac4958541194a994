"""Stages of an epilogue: chains of lane programs behind the PCUs of a product, and their inputs."""

from __future__ import annotations

import dataclasses

from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.words.pmu_word import Access, Level
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.epilogue.collector import Collector
from sw.epilogue.epilogue import Epilogue
from sw.epilogue.result_boxes import ResultBoxes
from sw.epilogue.result_walks import (
    ResultWalks,
    chain_vector_walk,
    latched_vector_walk,
    vector_walk,
)
from sw.epilogue.side_loads import (
    SideLoad,
    latched_name,
    row_vector_name,
    row_vector_size,
    tile_columns,
    tile_name,
    vector_name,
)
from sw.lane_codes.lane_code import LaneCode
from sw.passes.fit import Fit
from sw.passes.plan import Plan
from sw.stages.stage_graph import (
    Hold,
    Lanes,
    Load,
    Product,
    Socket,
    Stage,
    Stream,
    Walk,
    argument_of,
)
from sw.stages.walk_loops import loop, nest

__all__ = ["EpilogueGraph"]


class EpilogueGraph:
    """Stages and streams of an epilogue.

    Parameters
    ----------
    plan : Plan
        With an epilogue.
    places : Fit
    arrays : tuple of ArraySpec
        Arguments of the launch.
    pcus : mapping of (int, int) to str
        Names of the PCUs of the product by row group and grid column.

    Members
    -------
    stages : dict of str to Stage
    streams : list of Stream
    """

    def __init__(
        self,
        plan: Plan,
        places: Fit,
        arrays: tuple[ArraySpec, ...],
        pcus: dict[tuple[int, int], str],
    ) -> None:
        assert plan.product.epilogue is not None
        self.epilogue: Epilogue = plan.product.epilogue
        self.plan, self.fit, self.arrays, self.pcus = plan, places, arrays, pcus
        self.memory = ResultBoxes(plan, arrays)
        self.stages: dict[str, Stage] = {}
        self.streams: list[Stream] = []
        for collector in places.collectors:
            for number in range(len(collector.ports)):
                self._port(collector, number)
        self._vectors_beside_sums()
        for value in self.epilogue.vectors:
            self._vector(value)
        for value in self.epilogue.columns:
            self._row_vector(value)
        for side in places.sides:
            self._load(side)

    def results(self, collector: Collector, number: int) -> list[Socket]:
        """Sources of the results at a port of a result writer, in turn."""
        if self.epilogue.chain:
            return [Socket(_chain(collector, number, len(self.epilogue.chain) - 1))]
        return self._units(collector, number, PcuOutput.RESULT)

    def _units(self, collector: Collector, number: int, port: int) -> list[Socket]:
        return [Socket(self.pcus[each], port) for each in collector.pcus(number)]

    def _join(self, name: str, sources: list[Socket], sinks: list[Socket]) -> None:
        self.streams.append(Stream(name, tuple((each, 1) for each in sources), tuple(sinks)))

    def _takers(self, collector: Collector, number: int, value: str) -> list[Socket]:
        """Sockets of a port's chain that take a value."""
        found = []
        for index, code in enumerate(self.epilogue.chain):
            for port, taken in (
                (PcuInput.ACTIVATION, code.source),
                (PcuInput.AUXILIARY, code.auxiliary),
            ):
                if taken == value:
                    found.append(Socket(_chain(collector, number, index), port))
        return found

    def _port(self, collector: Collector, number: int) -> None:
        """PCUs whose results one port of a result writer takes, their chain, and their tiles."""
        units, beside = collector.pcus(number), self.epilogue.beside_sums
        latched = self.epilogue.latched is not None
        # Those of a row group follow one another behind a latched vector.
        in_turn = sorted(units) if latched else units
        for place, (group, column) in enumerate(in_turn):
            taken = FilterProgram()
            if latched or any(each in self.epilogue.tiles for each in beside):
                taken = FilterProgram(len(units), place)
            elif any(each in self.epilogue.vectors for each in beside):
                taken = FilterProgram(self.plan.col_par, column)
            self.stages[self.pcus[group, column]] = Product(self._program(column, taken))
        if self.epilogue.chain:
            sent, _ = self.epilogue.sent
            sinks = self._takers(collector, number, sent)
            name = f"{collector.name}_sums{number}"
            self._join(name, self._units(collector, number, PcuOutput.RESULT), sinks)
        for index, code in enumerate(self.epilogue.chain):
            self._link(collector, number, index, code)
        for value in self.epilogue.tiles:
            sinks = self._takers(collector, number, value)
            if value in beside:
                sinks += self._units(collector, number, PcuInput.AUXILIARY)
            self._tile(collector, number, value, sinks)

    def _program(self, column: int, auxiliary: FilterProgram) -> PcuProgram:
        """Program of a PCU of the product."""
        plan, product = self.plan, self.plan.product
        _, form = self.epilogue.sent
        return PcuProgram(
            fmt=product.fmt,
            weight_fmt=product.b_fmt,
            out=product.fmt.accumulator,
            weight=FilterProgram(plan.col_par, column),
            packet_vectors=plan.packet_rows * form.bits // 32,
            auxiliary=auxiliary,
            lanes=self.epilogue.program,
        )

    def _link(self, collector: Collector, number: int, index: int, code: LaneCode) -> None:
        """PCU of a chain."""
        name = _chain(collector, number, index)
        self.stages[name] = Lanes(PcuProgram(lanes=code.program))
        made = code.result
        if made != self.epilogue.result:
            sinks = self._takers(collector, number, made)
            self._join(f"{name}_results", [Socket(name, PcuOutput.RESULT)], sinks)

    def _tile(self, collector: Collector, number: int, value: str, sinks: list[Socket]) -> None:
        """Buffers of a tile for the row groups of a port, read in the order of its results."""
        plan, pieces = self.plan, self.fit.pieces
        form = self.epilogue.inputs[value].type.format
        column, count = collector.grid_columns(number)
        first, groups = collector.row_groups(number)
        walks = ResultWalks(plan, pieces, form, 1)
        names = [tile_name(value, group, column) for group in range(first, first + groups)]
        sources, read = [(Socket(name), 1) for name in names], walks.results((0, count))
        latched = self.epilogue.latched if value in self.epilogue.beside_sums else None
        if latched is not None:
            vector = latched_name(latched, collector, number)
            kind = self.epilogue.inputs[latched].type.format
            walk = latched_vector_walk(plan, collector, number, kind)
            self._vector_hold(vector, kind, walk)
            sources = [(Socket(vector), count * groups), *((each, count) for each, _ in sources)]
            read = walks.whole_passes(count)
        for name in names:
            side = next(each for each in self.fit.sides if name in each.holds)
            write = dataclasses.replace(
                walks.by_rows(tile_columns(plan, form, count)),
                last_level=None,
                modulus=len(side.holds),
                index=side.holds.index(name),
            )
            size = plan.block_bytes(form, 1, count, pieces)
            self.stages[name] = Hold(size, form.bits // 8, (write,), (read,))
        self.streams.append(Stream(f"{names[0]}_packets", tuple(sources), tuple(sinks)))

    def _vectors_beside_sums(self) -> None:
        """Buffers of the vectors that all PCUs of the product take, but before tiles."""
        plan, beside = self.plan, self.epilogue.beside_sums
        values = [each for each in beside if each in self.epilogue.vectors]
        if not values or self.epilogue.latched is not None:
            return
        names = [vector_name(each) for each in values]
        for name, form in zip(names, self.epilogue.formats(values), strict=True):
            self._vector_hold(name, form, vector_walk(plan, form, (0, plan.col_par)))
        sources = tuple((Socket(name), plan.col_par if names[1:] else 1) for name in names)
        sinks = tuple(Socket(each, PcuInput.AUXILIARY) for each in self.pcus.values())
        self.streams.append(Stream(f"{names[0]}_packets", sources, sinks))

    def _vector(self, value: str) -> None:
        """Buffers of a vector along the columns, for the chains behind the product."""
        form = self.epilogue.inputs[value].type.format
        if not any(value in code.formats for code in self.epilogue.chain):
            return
        for collector in self.fit.collectors:
            for number in range(len(collector.ports)):
                name = vector_name(value, collector, number)
                sinks = self._takers(collector, number, value)
                walk = chain_vector_walk(self.plan, collector, number, self.fit.pieces, form)
                self._vector_hold(name, form, walk)
                self._join(f"{name}_packets", [Socket(name)], sinks)

    def _row_vector(self, value: str) -> None:
        """Buffers of a vector along the rows: those of a row group, again for each pass.

        A box has a vector of memory for each row, the first element of which is read. Of a product
        of the transposes the elements of the rows lie one behind another.
        """
        plan, form = self.plan, self.epilogue.inputs[value].type.format
        lanes, turned = plan.config.width_bits // form.bits, plan.product.turned
        blocks, size = row_vector_size(plan, form)
        for group in range(plan.row_par):
            name = row_vector_name(value, group)
            write = Walk(
                (loop(blocks if turned else plan.rows, lanes),),
                windows=LoopProgram(plan.row_blocks),
                modulus=plan.row_par,
                index=group,
            )
            read = Walk(
                (loop(blocks, lanes if turned else lanes**2),),
                access=Access.ROW if turned else Access.COLUMN,
                windows=LoopProgram(plan.row_blocks),
                repeats=LoopProgram(plan.all_passes),
                last_level=Level.ADDRESS,
            )
            self.stages[name] = Hold(size, form.bits // 8, (write,), (read,))
            own = (each for (row, _), each in self.pcus.items() if row == group)
            sinks = [Socket(each, PcuInput.AUXILIARY) for each in own]
            self._join(f"{name}_packets", [Socket(name)], sinks)

    def _vector_hold(self, name: str, form: Format, read: Walk) -> None:
        plan = self.plan
        lanes, rows = plan.config.width_bits // form.bits, 32 // form.bits
        held = plan.held_columns(form)
        write = Walk(
            nest((rows, lanes), (held // lanes, rows * lanes)),
            launches=LoopProgram(plan.row_blocks),
            windows=LoopProgram(plan.c_slots),
        )
        self.stages[name] = Hold(4 * held, form.bits // 8, (write,), (read,))

    def _load(self, side: SideLoad) -> None:
        """Load stream of a tile or of a vector."""
        plan, source = self.plan, self.epilogue.inputs[side.value]
        form, width = source.type.format, plan.config.grid_columns
        across = [
            self.memory.loop(plan.col_blocks, 0, plan.columns),
            self.memory.loop(plan.c_blocks, 0, plan.pass_columns),
        ]
        if side.value in self.epilogue.vectors:
            loops = [BoxLoop(plan.row_blocks), *across]
            tensor = *self._vector_boxes(source.tensor, plan.held_columns(form)), tuple(loops)
            takers = len(side.holds)
        elif side.value in self.epilogue.columns:
            loops = [
                self.memory.loop(plan.row_blocks, 1, plan.block_rows),
                self.memory.loop(len(side.holds), 1, plan.rows),
            ]
            columns = 1 if plan.product.turned else plan.config.width_bits // form.bits
            tensor = self.memory.boxes(source.tensor, (columns, plan.rows), loops)
            takers = 1
        else:
            rows, (column, columns) = plan.rows // self.fit.pieces, side.columns
            step = (0, columns * width) if side.by_columns else (1, plan.rows)
            loops = [
                self.memory.loop(plan.row_blocks, 1, plan.block_rows),
                *across,
                self.memory.loop(self.fit.pieces, 1, rows),
                self.memory.loop(len(side.holds), *step),
            ]
            box = tile_columns(plan, form, columns), rows
            start = side.group * plan.rows, column * width
            tensor = self.memory.boxes(source.tensor, box, loops, *start)
            takers = 1
        name, stream = f"{side.holds[0]}_load", side.operand ^ side.agcu & 1
        port = 0 if plan.one_operand else side.operand
        self.stages[name] = Load(side.agcu, stream, *tensor, port, takers=takers)
        self._join(name, [Socket(name)], [Socket(each) for each in side.holds])

    def _vector_boxes(self, tensor: str, held: int) -> tuple[Descriptor, int]:
        """Boxes of a vector, each as often as its elements stand in a buffer."""
        number, array = argument_of(self.arrays, tensor)
        rows = 32 // array.format.bits
        descriptor = Descriptor(
            base=0,
            format=ElementFormat.of(array.format),
            dims=(array.shape[-1], rows),
            strides=(0,),
            box=(held, rows),
        )
        return descriptor, number


def _chain(collector: Collector, number: int, index: int) -> str:
    """Name of a PCU of the chain behind a port of a result writer."""
    return f"{collector.name}_chain{number}_{index}"
