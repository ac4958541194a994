"""Network of a chip program whose parts have cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.lanes.lane_room import ACTIVATION_ROOM, AUXILIARY_ROOM
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import PMU
from sw.chip_program import ChipProgram
from sw.fabric.nets import Nets, Output
from sw.prove.actor_classes import Kinds
from sw.prove.agcu_actors import BoxStream
from sw.prove.machine import Part
from sw.prove.network import Network
from sw.prove.pcu_actors import ResultDrain
from sw.prove.pmu_actors import Engine
from sw.prove.repeats import Repeats
from sw.prove.stream_packets import StreamPackets, tile_passes
from sw.timing.box_rows import BoxRows
from sw.timing.clock import TimedRepeats
from sw.timing.memory_port import LoadSide, StoreSide
from sw.timing.timed_agcus import (
    TimedBoxServer,
    TimedBoxStream,
    TimedIndexVectors,
    TimedStoredTokens,
    TimedTokenCount,
)
from sw.timing.timed_array import TimedGrid, TimedResultDrain
from sw.timing.timed_engines import READ, TimedIndexPort, TimedReadEngine, TimedWriteEngine
from sw.timing.timed_lanes import TimedLaneUnit
from sw.timing.timed_machine import (
    TimedChannel,
    TimedClosedEnd,
    TimedMachine,
    TimedPort,
    Watcher,
)
from sw.timing.timed_merges import TimedMerge, TimedMergeConsumer, group_merges

__all__ = ["TimedNetwork", "burst_beats"]

_KINDS = Kinds(
    machine=TimedMachine,
    channel=TimedChannel,
    port=TimedPort,
    index_port=TimedIndexPort,
    closed_end=TimedClosedEnd,
    merge=TimedMerge,
    merge_consumer=TimedMergeConsumer,
    write_engine=TimedWriteEngine,
    read_engine=TimedReadEngine,
    grid=TimedGrid,
    result_drain=TimedResultDrain,
    lane_unit=TimedLaneUnit,
    box_stream=TimedBoxStream,
    box_server=TimedBoxServer,
    token_count=TimedTokenCount,
    index_vectors=TimedIndexVectors,
    stored_tokens=TimedStoredTokens,
)

#: Cycles through an empty queue (`hw.lib.fifo`).
_QUEUE = 2
#: Beats of the longest burst of AXI, and the bytes at whose multiples bursts end (`hw.lib.axi`).
_BURST_BEATS, _BURST_BYTES = 256, 4096


class TimedNetwork(Network):
    """The actors of one timed run.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    packets : StreamPackets
    latency : int
        Latency of the memory in cycles.
    arguments : tuple of int
        Launch arguments; only their places within a burst matter.
    watcher : function, optional
        Is told of each move; periods that a run leaves out are not told.
    """

    def __init__(
        self,
        program: ChipProgram,
        nets: Nets,
        packets: StreamPackets,
        *,
        latency: int,
        arguments: tuple[int, ...] = (),
        watcher: Watcher | None = None,
    ) -> None:
        self._latency, self._arguments = latency, arguments
        self.sides: list[tuple[int, LoadSide | StoreSide]] = []
        self.end = 0.0
        self._grids: dict[tuple[int, ...], TimedGrid] = {}
        self._lanes: dict[tuple[int, ...], TimedLaneUnit] = {}
        self._engines: dict[tuple[int, ...], list[Any]] = {}
        self._timed_servers: list[Any] = []
        super().__init__(program, nets, packets, kinds=_KINDS)
        machine: Any = self.machine
        machine.watcher = watcher
        for root, net in nets.nets.items():
            channel: Any = self.channels[root]
            vectors = isinstance(root, Output) and root.kind is PMU and not root.tokens
            channel.connect(net.ways, READ if vectors else 0)
        merges: list[Any] = [*self._merges.values()]
        group_merges(merges)

    def run(self, *, whole: bool = False) -> None:
        super().run(whole=whole)
        clocked: list[Any] = self.actors
        #: Cycle after the last move.
        self.end = max([0.0, *(actor.free for actor in clocked)])
        for _, side in self.sides:
            self.end = max(self.end, side.ends())

    @property
    def first_issue(self) -> float | None:
        """Cycle in which the first vector enters an array; None without any."""
        found = [grid.first_issue for grid in self._grids.values() if grid.first_issue is not None]
        return min(found) if found else None

    def moves(self, at: tuple[int, ...], memory: bool) -> float:
        """Cycles in which the unit at a position moves something."""
        if memory:
            # It reads and writes at once.
            sides = [side for index, side in self.sides if index == at[0]]
            return max(
                (
                    sum(int(stream.rows.beats()) for stream in server.streams)
                    for server in self._timed_servers
                    if server.side in sides
                ),
                default=0,
            )
        if at in self._grids or at in self._lanes:
            return max(self._issues(at))
        ports = [0, 0]
        for engine in self._engines.get(at, ()):
            ports[isinstance(engine, TimedReadEngine)] += engine.vectors
        return max(ports)

    def by_lanes(self, at: tuple[int, ...]) -> bool:
        """Whether the lanes of a PCU issue in more cycles than its array takes vectors."""
        vectors, groups = self._issues(at)
        return groups > vectors

    def _issues(self, at: tuple[int, ...]) -> tuple[float, float]:
        """Cycles in which vectors enter the array of a PCU, and groups its lanes."""
        grid, lanes = self._grids.get(at), self._lanes.get(at)
        return grid.issued if grid else 0, lanes.busy if lanes else 0

    def _repeats(self, parts: Sequence[Part], engines: Sequence[Engine]) -> Repeats:
        return TimedRepeats(self.machine, parts, engines)

    def _groups(self) -> list[list[Part]]:
        # One clock moves all parts.
        return [self._parts()]

    def _add_pmu(self, at: tuple[int, ...], unit: PmuProgram) -> None:
        before = len(self.actors)
        super()._add_pmu(at, unit)
        engines: list[Any] = self.actors[before:]
        self._engines[at] = engines
        for kind in (TimedWriteEngine, TimedReadEngine):
            pair = [engine for engine in engines if isinstance(engine, kind)]
            if len(pair) == 2:
                pair[0].rival, pair[1].rival = pair[1], pair[0]

    def _add_pcu(self, at: tuple[int, ...], unit: PcuProgram) -> None:
        super()._add_pcu(at, unit)
        if unit.lanes is not None:
            lanes: Any = self.actors[-1]
            lanes.groups = self._chip.grid_columns / self._chip.pcu.lanes
            self._lanes[at] = lanes
            activation = None if unit.sums else lanes.source
            for port, room in (
                (activation, ACTIVATION_ROOM),
                (lanes.auxiliary, AUXILIARY_ROOM),
            ):
                if port is not None:
                    port.depth, port.passage = room, _QUEUE

    def _add_grid(self, at: tuple[int, ...], unit: PcuProgram, name: str) -> ResultDrain:
        drain: Any = super()._add_grid(at, unit, name)
        grid = drain._grid
        grid.by_row = unit.weights_by_row
        if unit.by_group:
            grid.columns = tile_passes(self.packets, at, unit).columns.tolist()
        drain.interval = 2.0 if unit.out.bits == 16 else 1.0
        if unit.softmax:
            drain.set_lanes(unit.softmax.role, self._chip.grid_columns / self._chip.pcu.lanes)
        self._grids[at] = grid
        found: ResultDrain = drain
        return found

    def _serve(self, index: int, streams: list[tuple[BoxStream, bool]], *, steady: bool) -> None:
        """Add one server of each side of an AGCU, in the order of the arbiter."""
        first = len(self.servers)
        # A side serves its streams one after the other, whether their order is free or not.
        super()._serve(index, [(stream, False) for stream, _ in reversed(streams)], steady=False)
        chip = self._chip
        agcu, beat = self._program.agcus[index], chip.width_bits // 8
        side: LoadSide | StoreSide
        store = streams[:1] and streams[0][0].channel is None
        if store:
            side = StoreSide(self._latency, chip.agcu.outstanding)
        else:
            side = LoadSide(self._latency, chip.agcu.outstanding, chip.agcu.landing_beats)
        burst = burst_beats(chip, store=bool(store))
        self.sides.append((index, side))
        servers: Any = self.servers[first:]
        self._timed_servers += servers
        for server in servers:
            server.side = side
            for stream in server.streams:
                port = int(stream.name.rsplit(" ", 1)[1])
                issuer = (agcu.stores if store else agcu.loads)[port]
                assert issuer is not None
                stream.rows = BoxRows(agcu, issuer, self._arguments, beat, burst)


def burst_beats(chip: ChipConfig, *, store: bool) -> int:
    """Most beats of a burst of a TMA engine; no burst crosses a multiple of so many."""
    longest = min(_BURST_BEATS, _BURST_BYTES // (chip.width_bits // 8))
    return longest if store else min(longest, chip.agcu.landing_beats // 4)
