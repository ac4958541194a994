"""Streams of an image in one iteration: all vectors of each, computed from those it depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import INDEX_BITS, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.error_codes import LaunchError, UnitError, agcu_number
from hw.arch.lanes.phase_word import STATISTICS, PhaseSource
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.launch import Argument
from hw.arch.pcu import FilterProgram, PcuInput, PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import AGCU, PCU, PMU, UnitKind
from hw.numeric.division import ceil_div
from sim.emulator.boxes import BoxStream
from sim.emulator.emulator_error import EmulatorError, LaunchFault
from sim.emulator.lane_streams import lane_results
from sim.emulator.matrix import Passes, results
from sim.emulator.scratchpad import Scratchpad
from sim.emulator.softmax_units import scores_results, values_results
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Junction, MergeInput, Nets, Output, find_nets
from sw.prove.softmax_packets import rise_vectors
from sw.prove.stream_packets import (
    StreamPackets,
    lane_runs,
    marked_tiles,
    taken_weights,
    tile_passes,
)
from sw.prove.unrolled_loops import box_points, index_vectors

__all__ = ["UNIT_STREAMS", "Fabric"]

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


class Fabric:
    """Dataflow of the iterations of a kernel, one at a time, from its loads to its stores.

    Parameters
    ----------
    program : ChipProgram
    arguments : sequence of Argument
        The launch arguments.
    memory : array of bytes
    """

    def __init__(
        self,
        program: ChipProgram,
        arguments: Sequence[Argument],
        memory: Bytes,
    ) -> None:
        self._program = program
        self._chip = program.config
        self._arguments = arguments
        self._memory = memory
        self._nets: Nets = find_nets(program)
        self._packets = StreamPackets(program, self._nets)
        #: Statistics of PCUs at the start of an iteration, and at its end.
        self._carried: dict[tuple[int, ...], Words] = {}
        self._left: dict[tuple[int, ...], Words] = {}
        self._iteration = 0
        self.begin(0)

    def begin(self, iteration: int) -> None:
        """Forget every stream: those of an iteration follow."""
        if iteration != self._iteration:
            self._carried, self._left = self._left, {}
        self._iteration = iteration
        self._streams: dict[Output | Junction, Bytes | None] = {}
        self._pads: dict[tuple[int, ...], Scratchpad] = {}
        self.macs_issued = 0
        #: Indices of AGCUs outside their tensors, whose boxes are zeros or are dropped.
        self.faults: list[LaunchFault] = []

    def boxes(self, index: int, port: int, *, store: bool) -> list[BoxStream]:
        """Boxes of each program of an AGCU stream; none if it is off."""
        agcu: AgcuProgram = self._program.agcus[index]
        issuer = dict(enumerate(agcu.stores if store else agcu.loads)).get(port)
        if issuer is None:
            return []
        points = [box_points(program) for program in issuer.programs]
        number = agcu.index_inputs.get((port, store))
        if number is not None:
            self._place(index, number, issuer, points)
        return [
            self._boxes(index, program, places)
            for program, places in zip(issuer.programs, points, strict=True)
        ]

    def _place(self, index: int, number: int, issuer: IssuerProgram, points: list[Ints]) -> None:
        """Put the indices that an AGCU takes at an input into the coordinates of its boxes."""
        per_vector = self._chip.width_bits // INDEX_BITS
        end, begin = Input(AGCU, (index,), number), 0
        vectors = self.first(end, int(index_vectors(issuer, per_vector).sum()))
        indices = np.ascontiguousarray(vectors).view("<i4").reshape(-1)
        for program, places in zip(issuer.programs, points, strict=True):
            if program.index and len(places):
                mine = indices[begin : begin + len(places)]
                places[:, program.index] = mine
                begin += ceil_div(len(places), per_vector) * per_vector
                descriptor, _ = self._program.agcus[index].descriptors[program.descriptor]
                if ((mine < 0) | (mine >= descriptor.dims[program.index])).any():
                    unit = agcu_number(self._chip, index)
                    self.faults.append(LaunchFault(LaunchError.UNIT, int(UnitError.INDEX), unit))

    def _boxes(self, index: int, program: IssuerProgram, points: Ints) -> BoxStream:
        descriptor, number = self._program.agcus[index].descriptors[program.descriptor]
        argument = self._arguments[number]
        base = (descriptor.base + argument.value) % (1 << 64)
        if self._iteration:
            base = (base + self._iteration * argument.stride) % (
                1 << self._chip.agcu.axi_address_bits
            )
        return BoxStream(
            descriptor,
            base,
            points,
            self._chip.width_bits // 8,
            self._chip.agcu.axi_address_bits,
            agcu_number(self._chip, index),
        )

    def stored(self, index: int, port: int, count: int) -> Bytes:
        """The first `count` vectors of a store stream of an AGCU."""
        return self.first(Input(AGCU, (index,), port), count)

    def first(self, end: Input, count: int, taken: FilterProgram | None = None) -> Bytes:
        """The first `count` vectors that an input takes."""
        data = self._taken(end, taken or FilterProgram())
        if len(data) < count:
            raise EmulatorError(
                f"Vectors that reach {end} must be at least {count}, not {len(data)}",
                where=str(end),
            )
        return data[:count]

    def _taken(self, end: Input, taken: FilterProgram) -> Bytes:
        """All vectors that pass the filter of an input."""
        data = self.arriving(end)
        if taken.modulus > 1:
            data = data[self._packets.arriving(end).taken_vectors(taken.modulus, taken.index)]
        return data

    def arriving(self, end: Input | MergeInput) -> Bytes:
        """All vectors of the stream that reaches an input."""
        root = self._nets.feeds.get(end)
        if root is None:
            name = end if isinstance(end, Input) else end.junction
            raise EmulatorError(f"Input {end} must have a stream that reaches it", where=str(name))
        return self._leaving(root)

    def _leaving(self, root: Output | Junction) -> Bytes:
        """Stream of an output, computed at its first use."""
        if root in self._streams:
            stream = self._streams[root]
            if stream is None:
                raise EmulatorError(
                    f"Values of {root} must not depend on themselves", where=str(root)
                )
            return stream
        self._streams[root] = None
        if isinstance(root, Junction):
            stream = self._merged(root)
        else:
            stream = UNIT_STREAMS[root.kind](self, root, self._program.unit(root.at))
        self._streams[root] = stream
        return stream

    def _loaded(self, root: Output, unit: AgcuProgram) -> Bytes:
        boxes = self.boxes(root.at[0], root.port, store=False)
        parts = [each.load(self._memory) for each in boxes]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _read(self, root: Output, unit: PmuProgram) -> Bytes:
        pad = self._pads.get(root.at)
        if pad is None:
            filters = (unit.writers[0], unit.indexed or unit.writers[1])

            def taken(number: int, count: int) -> Bytes:
                one = filters[number]
                packets = FilterProgram(one.modulus, one.index) if one else FilterProgram()
                return self.first(Input(PMU, root.at, number), count, packets)

            pad = Scratchpad(self._chip, unit, f"PMU {root.at}", taken)
            self._pads[root.at] = pad
        vectors = pad.read(root.port)
        if pad.outside:
            row, column = root.at
            number = row * self._chip.columns + column
            raise LaunchFault(LaunchError.UNIT, int(UnitError.INDEX), number)
        return vectors

    def _merged(self, root: Junction) -> Bytes:
        nothing = np.zeros((0, self._chip.width_bits // 8), np.uint8)
        turns = [MergeInput(root, turn) for turn in range(len(self._nets.packets[root]))]
        sources = [self.arriving(end) if end in self._nets.feeds else nothing for end in turns]
        self._packets.leaving(root)
        order = self._packets.rotations[root]
        begins, before = [], 0
        for end, data in zip(turns, sources, strict=True):
            begins.append(before + np.append(0, np.cumsum(self._packets.arriving(end).lengths)))
            before += len(data)
        lengths = order.packets.lengths
        if order.packets.tail:
            lengths = np.append(lengths, order.packets.tail)
        firsts = np.zeros(len(lengths), np.int64)
        for number, starts in enumerate(begins):
            mine = order.sources == number
            firsts[mine] = starts[order.numbers[mine]]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        vectors = np.repeat(firsts, lengths) + within
        merged: Bytes = np.concatenate(sources)[vectors]
        return merged

    def _computed(self, root: Output, unit: PcuProgram) -> Bytes:
        """Result packets of a PCU: its sums, or what its lanes make of their streams."""
        if unit.softmax:
            return self._attention(root, unit, unit.softmax)
        if unit.lanes is None:
            return self._sums(root, unit)
        streams: dict[PhaseSource, Bytes] = {}
        for source, port, taken in (
            (PhaseSource.ACTIVATION, PcuInput.ACTIVATION, unit.activation),
            (PhaseSource.AUXILIARY, PcuInput.AUXILIARY, unit.auxiliary),
        ):
            if port in unit.inputs:
                streams[source] = self._taken(Input(PCU, root.at, port), taken)
        if unit.sums:
            streams[PhaseSource.ACCUMULATORS] = self._sums(root, unit)
        runs = lane_runs(self._packets, root.at, unit)
        if runs.whole < len(runs.phases):
            raise EmulatorError(
                f"Packets of a lane program must end, not stop in phase {runs.phases[-1]} with "
                f"{runs.counts[-1]} vectors of its source and {runs.besides[-1]} beside them",
                where=str(root),
            )
        start = np.zeros((1, STATISTICS, self._chip.width_bits // 16), np.uint32)
        self._left[root.at] = self._carried.get(root.at, start).copy()
        return lane_results(self._chip, unit.lanes, runs, streams, self._left[root.at])

    def _attention(self, root: Output, unit: PcuProgram, part: SoftmaxProgram) -> Bytes:
        """Results of a part of fused softmax."""
        at, chip = root.at, self._chip
        activation, weight = Input(PCU, at, PcuInput.ACTIVATION), Input(PCU, at, PcuInput.WEIGHT)
        passes = tile_passes(self._packets, at, unit)
        for fault in passes.faults:
            raise EmulatorError(f"Tiles must fit fused softmax: {fault}", where=str(root))
        number = int(passes.ends.max(initial=0))
        if part.role is SoftmaxRole.SCORES:
            sums = self._sums(root, dataclasses.replace(unit, softmax=None))
            groups = marked_tiles(self._packets, at, unit, number)
            return scores_results(chip, part, passes, groups, sums)
        taken = taken_weights(self._packets, at, unit)
        rises = rise_vectors(taken, number, chip.grid_columns)
        count = int(passes.tiles.lengths[:number].sum())
        activations = self.first(activation, count, unit.activation)
        vectors = int(rises.sum()) + number * chip.grid_columns
        weights = self.first(weight, vectors, unit.weight)
        self.macs_issued += count * chip.grid_rows * chip.grid_columns
        return values_results(chip, passes, rises, activations, weights)

    def _sums(self, root: Output, unit: PcuProgram) -> Bytes:
        """Result vectors of a matrix unit; passes with the same extents are computed together."""
        columns, width = self._chip.grid_columns, self._chip.width_bits // 8
        activation = Input(PCU, root.at, PcuInput.ACTIVATION)
        self.arriving(activation)
        taken = tile_passes(self._packets, root.at, unit)
        for fault in taken.faults:
            raise EmulatorError(
                f"Tiles must fit the array and agree in a pass: {fault}", where=str(root)
            )
        rows, together = taken.rows, taken.columns
        depths = (taken.ends - taken.begins) // together
        number = int(taken.ends.max(initial=0))  # tiles of passes that end
        lengths = taken.tiles.lengths[:number]
        count = int(lengths.sum())
        activations = self.first(activation, count, unit.activation)
        weights = self.first(Input(PCU, root.at, PcuInput.WEIGHT), number * columns, unit.weight)
        each = unit.fmt.products_per_cycle
        self.macs_issued += count * self._chip.grid_rows * columns * each

        starts = np.append(0, np.cumsum(lengths))
        places = np.cumsum(taken.sizes) - taken.sizes
        out = np.empty((int(taken.sizes.sum()), width), np.uint8)
        shapes = np.stack([rows, depths, together], axis=1)
        for height, depth, several in np.unique(shapes, axis=0).tolist():
            chosen = np.flatnonzero((shapes == (height, depth, several)).all(axis=1))
            if len(chosen) == len(rows) and several == 1:
                left, right = activations, weights
            else:
                # Tiles by column pass: each takes one tile of every group of its pass.
                order = np.arange(depth * several).reshape(depth, several).T
                tiles = (taken.begins[chosen, np.newaxis, np.newaxis] + order).ravel()
                left = activations[(starts[tiles, np.newaxis] + np.arange(height)).ravel()]
                right = weights[(tiles[:, np.newaxis] * columns + np.arange(columns)).ravel()]
            passes = Passes(
                height,
                left.reshape(len(chosen) * several, depth, height, width),
                right.reshape(len(chosen) * several, depth, columns, width),
                several,
            )
            vectors = results(self._chip, unit, passes)
            where = places[chosen, np.newaxis] + np.arange(vectors.shape[1])
            out[where.ravel()] = vectors.reshape(-1, width)
        return out


#: All vectors that leave a vector output of each kind of unit: a function of the fabric, the output
#: and the program of its unit.
UNIT_STREAMS: dict[UnitKind, Callable[[Fabric, Output, Any], Bytes]] = {
    PCU: Fabric._computed,
    PMU: Fabric._read,
    AGCU: Fabric._loaded,
}
