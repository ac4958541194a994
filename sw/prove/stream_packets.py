"""Packets of every stream of an image, computed before the run: none depends on data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import AgcuProgram
from hw.arch.lanes.phase_word import PhaseSource
from hw.arch.pcu import PcuInput, PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import AGCU, PCU, PMU, UnitKind
from hw.numeric.division import ceil_div
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Junction, MergeInput, Nets, Output
from sw.prove.packets import (
    Packets,
    Rotation,
    cut_packets,
    engine_packets,
    even_packets,
    rotate,
)
from sw.prove.phase_runs import PhaseRuns, phase_runs
from sw.prove.softmax_packets import softmax_faults, softmax_sizes
from sw.prove.unrolled_loops import box_sizes

__all__ = [
    "SENT_PACKETS",
    "CyclicStreamError",
    "StreamPackets",
    "TilePasses",
    "lane_runs",
    "marked_tiles",
    "taken_weights",
    "tile_passes",
]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class CyclicStreamError(Exception):
    """A stream whose packets would depend on themselves."""


class StreamPackets:
    """Packets at every output and input of units and merges.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    """

    def __init__(self, program: ChipProgram, nets: Nets) -> None:
        self.config = program.config
        self._program = program
        self._nets = nets
        self._known: dict[Output | Junction, Packets | None] = {}
        #: Packets of each merge by their sources.
        self.rotations: dict[Junction, Rotation] = {}
        #: Runs of the phases of each PCU with a lane program, as far as asked for.
        self.lane_runs: dict[tuple[int, ...], PhaseRuns] = {}
        #: Faults of packets that a unit cannot take.
        self.faults: list[str] = []

    def arriving(self, end: Input | MergeInput) -> Packets:
        """Packets that arrive at an input; none if no stream reaches it."""
        root = self._nets.feeds.get(end)
        return even_packets(0, 1, final=False) if root is None else self.leaving(root)

    def leaving(self, root: Output | Junction) -> Packets:
        """Packets that leave an output of vectors.

        Raises
        ------
        CyclicStreamError
            If they depend on themselves.
        """
        if root in self._known:
            packets = self._known[root]
            if packets is None:
                raise CyclicStreamError(f"{root} depends on itself")
            return packets
        self._known[root] = None
        packets = self._packets(root)
        self._known[root] = packets
        return packets

    def turns(self, root: Junction) -> int:
        """Sources of a merge."""
        return len(self._nets.packets[root])

    def _packets(self, root: Output | Junction) -> Packets:
        if isinstance(root, Junction):
            counts = self._nets.packets[root]
            turns = [self.arriving(MergeInput(root, turn)) for turn in range(len(counts))]
            self.rotations[root] = rotate(turns, counts)
            return self.rotations[root].packets
        return SENT_PACKETS[root.kind](self, root, self._program.unit(root.at))


@dataclasses.dataclass(frozen=True)
class TilePasses:
    """Passes of a PCU: the activation tiles that it takes, up to each `final` flag.

    Parameters
    ----------
    tiles : Packets
    begins, ends : array
        Per pass, the number of its first tile, and of the one after its last.
    rows : array
        Per pass, the rows of each of its tiles.
    columns : array
        Per pass, the tiles of each of its groups: column passes that share rows of activations.
    sizes : array
        Per pass, the vectors of its results.
    faults : tuple of str
        Reasons why the array cannot run them.
    """

    tiles: Packets
    begins: Ints
    ends: Ints
    rows: Ints
    columns: Ints
    sizes: Ints
    faults: tuple[str, ...]


def tile_passes(streams: StreamPackets, at: tuple[int, ...], unit: PcuProgram) -> TilePasses:
    """Passes of the PCU at a position."""
    taken = unit.activation
    arriving = streams.arriving(Input(PCU, at, PcuInput.ACTIVATION))
    tiles = arriving.taken(taken.modulus, taken.index)
    ends = np.flatnonzero(tiles.finals) + 1
    begins = np.append(0, ends)[: len(ends)]
    rows = tiles.lengths[begins]
    columns = np.ones(len(ends), np.int64)
    faults: list[str] = []
    if unit.by_group and len(ends):
        columns, faults = _column_passes(streams, at, unit, begins, ends)
    most, tallest = streams.config.pcu.accumulator_rows, int(tiles.lengths.max(initial=0))
    if len(ends) and tallest > most:
        faults.append(f"PCU {at} gets a tile of {tallest} rows, its banks hold {most}")
    heights = rows * columns
    if tallest <= most < heights.max(initial=0):
        high = int(heights.argmax())
        faults.append(
            f"PCU {at} gets a group of {columns[high]} tiles of {rows[high]} rows, its banks hold "
            f"{most} rows"
        )
    if (tiles.lengths[: ends.max(initial=0)] != np.repeat(rows, ends - begins)).any():
        faults.append(f"PCU {at} gets tiles of different rows in one pass")
    sizes = ceil_div(heights, 2) if unit.out.bits == 16 else heights
    if unit.softmax:
        sizes = softmax_sizes(unit.softmax.role, rows)
        weights = taken_weights(streams, at, unit)
        faults += softmax_faults(
            f"PCU {at}", unit.softmax.role, rows, weights, streams.config.grid_columns
        )
    return TilePasses(tiles, begins, ends, rows, columns, sizes, tuple(faults))


def _column_passes(
    streams: StreamPackets, at: tuple[int, ...], unit: PcuProgram, begins: Ints, ends: Ints
) -> tuple[Ints, list[str]]:
    """Tiles of each group of a pass, by pass, and faults of the weights that divide it."""
    number = int(ends[-1])
    faults: list[str] = []
    weights, taken = streams.arriving(Input(PCU, at, PcuInput.WEIGHT)), unit.weight
    mine = np.arange(taken.index, len(weights.lengths), taken.modulus)[:number]
    vectors = streams.config.grid_columns
    if (odd := weights.lengths[mine] != vectors).any():
        length = weights.lengths[mine][odd][0]
        faults.append(
            f"PCU {at} gets a packet of {length} weight vectors, its tiles have {vectors}"
        )
    first = marked_tiles(streams, at, unit, number)
    first[begins] = True
    starts = np.flatnonzero(first)
    places = np.arange(number) - np.repeat(starts, np.diff(starts, append=number))
    columns = np.maximum.reduceat(places, begins) + 1
    tiles = ends - begins
    expected = (np.arange(number) - np.repeat(begins, tiles)) % np.repeat(columns, tiles)
    if (tiles % columns).any() or (places != expected).any():
        faults.append(f"PCU {at} gets groups of different numbers of tiles in one pass")
    return columns, faults


def taken_weights(streams: StreamPackets, at: tuple[int, ...], unit: PcuProgram) -> Packets:
    """Packets of weights that the PCU at a position takes."""
    arriving = streams.arriving(Input(PCU, at, PcuInput.WEIGHT))
    return arriving.taken(unit.weight.modulus, unit.weight.index)


def marked_tiles(
    streams: StreamPackets, at: tuple[int, ...], unit: PcuProgram, number: int
) -> Bools:
    """Which of so many tiles are the first after a mark `final` of the weights, or of all."""
    weights, taken = streams.arriving(Input(PCU, at, PcuInput.WEIGHT)), unit.weight
    mine = np.arange(taken.index, len(weights.lengths), taken.modulus)[:number]
    # A mark of the packets from one that is taken to the one before the next begins a group.
    marks = np.append(0, np.cumsum(weights.finals))[mine]
    first = np.ones(number, np.bool_)
    first[1 : len(mine)] = np.diff(marks) > 0
    return first


def lane_runs(streams: StreamPackets, at: tuple[int, ...], unit: PcuProgram) -> PhaseRuns:
    """Runs of the phases of the PCU at a position, which has a lane program; computed once."""
    if at in streams.lane_runs:
        return streams.lane_runs[at]
    assert unit.lanes is not None
    taken: dict[PhaseSource, Packets] = {}
    for source, port, chosen in (
        (PhaseSource.ACTIVATION, PcuInput.ACTIVATION, unit.activation),
        (PhaseSource.AUXILIARY, PcuInput.AUXILIARY, unit.auxiliary),
    ):
        if port in unit.inputs:
            packets = streams.arriving(Input(PCU, at, port))
            taken[source] = packets.taken(chosen.modulus, chosen.index)
    if unit.sums:
        sizes = tile_passes(streams, at, unit).sizes
        taken[PhaseSource.ACCUMULATORS] = Packets(sizes, np.ones(len(sizes), np.bool_))
    streams.lane_runs[at] = phase_runs(unit.lanes, streams.config.grid_columns, taken)
    return streams.lane_runs[at]


def _pcu(streams: StreamPackets, root: Output, unit: PcuProgram) -> Packets:
    length = unit.packet_vectors
    if unit.lanes is None:
        sizes = tile_passes(streams, root.at, unit).sizes
        return cut_packets(sizes, np.ones(len(sizes), np.bool_), length)
    runs = lane_runs(streams, root.at, unit)
    sent = np.flatnonzero(runs.sizes[: runs.whole])
    packets = cut_packets(runs.sizes[sent], runs.finals[sent], length)
    rest = int(runs.sizes[runs.whole :].sum())  # of a packet that never ends
    if not rest:
        return packets
    whole = even_packets(rest // length if length else 0, length, final=False)
    return Packets(
        np.append(packets.lengths, whole.lengths),
        np.append(packets.finals, whole.finals),
        rest - whole.vectors,
    )


def _pmu(streams: StreamPackets, root: Output, unit: PmuProgram) -> Packets:
    reader = unit.readers[root.port]
    assert reader is not None
    return engine_packets(reader)


def _agcu(streams: StreamPackets, root: Output, unit: AgcuProgram) -> Packets:
    issuer = unit.loads[root.port]
    assert issuer is not None
    sizes = box_sizes(unit, issuer, streams.config.width_bits // 8)
    return Packets(sizes, np.zeros(len(sizes), np.bool_))


#: Packets that leave a vector output of each kind of unit: a function of the streams, the output
#: and the program of its unit.
SENT_PACKETS: dict[UnitKind, Callable[[StreamPackets, Output, Any], Packets]] = {
    PCU: _pcu,
    PMU: _pmu,
    AGCU: _agcu,
}
