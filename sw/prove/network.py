"""Actors and channels of a decoded image, connected for a token-level run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import INDEX_BITS, AgcuProgram
from hw.arch.lanes.lane_room import result_room, strip_units
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.pcu import FilterProgram, PcuInput, PcuOutput, PcuProgram
from hw.arch.pmu import PmuInput, PmuProgram
from hw.arch.unit_kind import AGCU, PCU, PMU, UnitKind
from hw.arch.words.pmu_word import TokenSource
from sw.chip_program import ChipProgram
from sw.fabric.nets import DeadEnd, Input, Junction, MergeInput, Nets, Output
from sw.prove.actor_classes import UNTIMED, Kinds
from sw.prove.agcu_actors import BoxServer, BoxStream, StoredTokens, TokenCount, Waits
from sw.prove.credits import load_is_free, store_is_free
from sw.prove.index_walk import index_walk
from sw.prove.machine import Actor, Channel, Consumer, Core, Part, Port
from sw.prove.merge_actors import Merge
from sw.prove.pcu_actors import Grid, ResultDrain
from sw.prove.pmu_actors import Engine
from sw.prove.repeats import Repeats, connected
from sw.prove.softmax_packets import rise_vectors
from sw.prove.stream_packets import (
    StreamPackets,
    TilePasses,
    lane_runs,
    marked_tiles,
    taken_weights,
    tile_passes,
)
from sw.prove.unrolled_loops import MOST_STEPS, box_owners, box_sizes, index_vectors

__all__ = ["UNIT_ACTORS", "Network"]

Ints = npt.NDArray[np.int64]

#: Depth of the buffer at a vector output of a PCU and of a PMU, and at a token output of a PMU.
_RESULT_ENTRIES, _READ_ENTRIES, _TOKEN_ENTRIES = 2, 8, 2
#: Depth of the buffer before an engine, an array's activations or a store, in payloads.
_INPUT_ENTRIES = 2


class Network:
    """The actors of one token-level run.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    packets : StreamPackets
    order : int
        The stream that an AGCU prefers where the order of its boxes may matter, 0 or 1.
    limit : int
        Most steps of the run.
    kinds : Kinds
        Classes of its parts.
    """

    def __init__(
        self,
        program: ChipProgram,
        nets: Nets,
        packets: StreamPackets,
        order: int = 0,
        limit: int = MOST_STEPS,
        kinds: Kinds = UNTIMED,
    ) -> None:
        self.kinds = kinds
        self.machine = kinds.machine(limit)
        self.actors: list[Actor] = []
        self.stored: list[StoredTokens] = []
        self.consumers: list[Consumer] = []
        self.servers: list[BoxServer] = []
        self.choices: list[BoxServer] = []
        self._program = program
        self._chip = program.config
        self._nets = nets
        self.packets = packets
        self._order = order
        self._inputs: dict[Input, Consumer] = {}
        self.channels: dict[Output | Junction, Channel] = {}
        self._inner: list[Channel] = []  # within a unit
        self._merges: dict[Junction, Merge] = {}
        for root in nets.nets:
            self.channels[root] = kinds.channel(self.machine, str(root))
        for kind, at, unit in program.units():
            UNIT_ACTORS[kind](self, at, unit)
        for root in nets.nets:
            if isinstance(root, Junction):
                self._add_merge(root)
        #: Vectors of buffers before forks, which the run leaves out: a refusal may come so early.
        self.early = 0
        for root, net in nets.nets.items():
            channel = self.channels[root]
            entries = channel.entries if len(net.leaves) == 1 else 0
            if not root.tokens:
                self.early += net.before_forks + channel.entries - entries
            for leaf, room in net.leaves:
                channel.attach(self._consumer(leaf), room + entries)

    def channel(self, root: Output, producer: Actor, entries: int = 0) -> Channel:
        """Channel of an output: an actor sends to it, through a buffer of so many payloads."""
        channel = self.channels[root]
        channel.producer, channel.entries = producer, entries
        return channel

    def _consumer(self, leaf: Input | MergeInput | DeadEnd) -> Consumer:
        if isinstance(leaf, MergeInput):
            return self._merges[leaf.junction].consumers[leaf.turn]
        if isinstance(leaf, DeadEnd) or leaf not in self._inputs:
            end = self.kinds.closed_end(str(leaf))
            self.consumers.append(end)
            return end
        consumer = self._inputs[leaf]
        self.consumers.append(consumer)
        return consumer

    def port(
        self,
        end: Input,
        core: Core,
        entries: int,
        taken: FilterProgram,
        kind: type[Port] | None = None,
    ) -> Port:
        """Port of an actor at an input: a packet filter, then a buffer of so many payloads."""
        port = (kind or self.kinds.port)(
            self.machine,
            str(end),
            core,
            entries,
            self.packets.arriving(end) if taken.modulus > 1 else None,
            taken.modulus,
            taken.index,
        )
        self._inputs[end] = port
        return port

    def _add_pmu(self, at: tuple[int, ...], unit: PmuProgram) -> None:
        engines: list[Engine | None] = []
        for number, program in enumerate(unit.engines):
            if program is None:
                engines.append(None)
                continue
            indices = None
            if unit.indexed and unit.indexed.engine == number:
                indices = index_walk(program, unit.indexed, self._chip.width_bits)
            if number < len(PmuInput):
                end = Input(PMU, at, number)
                writer = self.kinds.write_engine(self.machine, str(end), program, indices)
                taken = FilterProgram(program.modulus, program.index)
                writer.port = self.port(end, writer, _INPUT_ENTRIES, taken)
                writer.lag = program.ring.count
                engines.append(writer)
            else:
                root = Output(PMU, at, number - len(PmuInput))
                reader = self.kinds.read_engine(self.machine, str(root), program, indices)
                reader.channel = self.channel(root, reader, _READ_ENTRIES)
                engines.append(reader)
        if unit.indexed and (engine := engines[unit.indexed.engine]):
            end = Input(PMU, at, PmuInput.W1)
            taken = FilterProgram(unit.indexed.modulus, unit.indexed.index)
            engine.index_port = self.port(end, engine, _INPUT_ENTRIES, taken, self.kinds.index_port)
        for number, engine in enumerate(engines):
            if engine is None:
                continue
            engine.others = [each for n in unit.partners(number) if (each := engines[n])]
            for output, source in enumerate(unit.tokens):
                if source is TokenSource(number + 1):
                    root = Output(PMU, at, output, tokens=True)
                    engine.tokens.append(self.channel(root, engine, _TOKEN_ENTRIES))
            self.actors.append(engine)

    def _add_pcu(self, at: tuple[int, ...], unit: PcuProgram) -> None:
        result = Output(PCU, at, PcuOutput.RESULT)
        if unit.lanes is None:
            drain = self._add_grid(at, unit, str(result))
            drain.channel = self.channel(result, drain, _RESULT_ENTRIES)
            return
        runs = lane_runs(self.packets, at, unit)
        words = self._chip.grid_columns
        name = f"PCU {at} lanes"
        sizes = {"width_bits": self._chip.width_bits, "lanes": self._chip.pcu.lanes}
        strip, entries = strip_units(**sizes), result_room(**sizes)
        lanes = self.kinds.lane_unit(self.machine, name, words, strip, unit.lanes, runs)
        lanes.channel = self.channel(result, lanes, entries)
        if unit.sums:
            name = f"PCU {at} sums"
            drain = self._add_grid(at, unit, name)
            drain.channel = self.kinds.channel(self.machine, name)
            drain.channel.producer = drain
            lanes.source = self.kinds.port(self.machine, name, lanes, 0)
            lanes.source.standing = 1
            drain.channel.attach(lanes.source, _RESULT_ENTRIES)
            self._inner.append(drain.channel)
            self.consumers.append(lanes.source)
        elif PcuInput.ACTIVATION in unit.inputs:
            activation = Input(PCU, at, PcuInput.ACTIVATION)
            lanes.source = self.port(activation, lanes, 0, unit.activation)
        if PcuInput.AUXILIARY in unit.inputs:
            auxiliary = Input(PCU, at, PcuInput.AUXILIARY)
            lanes.auxiliary = self.port(auxiliary, lanes, 0, unit.auxiliary)
        self.actors.append(lanes)

    def _add_grid(self, at: tuple[int, ...], unit: PcuProgram, name: str) -> ResultDrain:
        """Add the matrix unit of a PCU; its drain has no channel yet."""
        passes = tile_passes(self.packets, at, unit)
        self.packets.faults += passes.faults
        grid = self.kinds.grid(self.machine, f"PCU {at}", self._chip, passes.tiles)
        if unit.softmax:
            self._set_softmax(grid, at, unit, unit.softmax, passes)
        activation, weight = Input(PCU, at, PcuInput.ACTIVATION), Input(PCU, at, PcuInput.WEIGHT)
        grid.activation = self.port(activation, grid, _INPUT_ENTRIES, unit.activation)
        gathered = max(self._chip.grid_columns, 4)
        grid.weight = self.port(weight, grid, gathered, unit.weight)
        grid.results = self.kinds.result_drain(self.machine, name, grid, passes.sizes)
        self.actors += [grid, grid.results]
        return grid.results

    def _set_softmax(
        self,
        grid: Grid,
        at: tuple[int, ...],
        unit: PcuProgram,
        part: SoftmaxProgram,
        passes: TilePasses,
    ) -> None:
        """Tell a grid the vectors of rises that it takes, or whether its mask begins anew."""
        if part.role is SoftmaxRole.VALUES:
            weights = taken_weights(self.packets, at, unit)
            count = len(passes.tiles.lengths)
            grid.set_rises(rise_vectors(weights, count, self._chip.grid_columns))
            return
        marked = marked_tiles(self.packets, at, unit, int(passes.ends.max(initial=0)))
        groups, mask = int(marked[passes.begins].sum()), part.mask
        if (mask.key_step or mask.query_step) and (not mask.groups or groups % mask.groups):
            grid.restart = f"{grid.name} ends within the query groups of its mask, after {groups}"

    def _add_agcu(self, at: tuple[int, ...], agcu: AgcuProgram) -> None:
        index = at[0]
        counts = []
        for port in range(self._chip.token_tracks):
            end = Input(AGCU, at, port, tokens=True)
            credit = agcu.credits[port] if port < len(agcu.credits) else 0
            counts.append(self.kinds.token_count(self.machine, str(end), credit))
            self._inputs[end] = counts[-1]
        for store in (False, True):
            streams: list[tuple[BoxStream, bool]] = []
            steady = True
            for port, issuer in enumerate(agcu.stores if store else agcu.loads):
                if issuer is None:
                    continue
                sizes = box_sizes(agcu, issuer, self._chip.width_bits // 8)
                stream = self.kinds.box_stream(
                    f"AGCU {index} {'store' if store else 'load'} {port}",
                    sizes,
                    *self._box_waits(agcu, index, port, store, counts),
                )
                if store:
                    free = store_is_free(self._program, self._nets, index, port, sizes)
                    if port in agcu.stored:
                        root = Output(AGCU, at, port, tokens=True)
                        channel = self.channels[root]
                        name = f"AGCU {index} stored {port}"
                        stream.stored = self.kinds.stored_tokens(self.machine, name, channel)
                        channel.producer = stream.stored
                        self.stored.append(stream.stored)
                        self.actors.append(stream.stored)
                else:
                    root = Output(AGCU, at, port)
                    stream.channel = self.channels[root]
                    free = load_is_free(self._program, self._nets, root, issuer, sizes)
                streams.append((stream, free))
                # Issuers without waits and without empty loops stay in lockstep.
                for program in issuer.programs:
                    least = min(low for low, _ in program.chain().counts())
                    steady = steady and not (program.waits or program.index) and least > 0
            self._serve(index, streams, steady=steady)

    def _box_waits(
        self, agcu: AgcuProgram, index: int, port: int, store: bool, counts: list[TokenCount]
    ) -> tuple[Ints, list[Waits]]:
        """Kind of each box of a stream, and what boxes of each kind wait for."""
        issuer = (agcu.stores if store else agcu.loads)[port]
        assert issuer is not None
        owners = box_owners(issuer)
        waits: list[Waits] = [
            [(counts[wait.port], wait.tokens) for wait in program.waits]
            for program in issuer.programs
        ]
        number = agcu.index_inputs.get((port, store))
        if number is None:
            return owners, waits
        first = index_vectors(issuer, self._chip.width_bits // INDEX_BITS)
        end = Input(AGCU, (index,), number)
        indices = self.kinds.index_vectors(self.machine, str(end), int(first.sum()))
        self._inputs[end] = indices
        with_index: list[Waits] = [[*each, (indices, 1)] for each in waits]
        return owners + first * len(waits), [*waits, *with_index]

    def _serve(self, index: int, streams: list[tuple[BoxStream, bool]], *, steady: bool) -> None:
        """Add the servers of one side of an AGCU: one, or one per stream if the order is free."""
        some = [(stream, free) for stream, free in streams if stream.boxes]
        together = len(some) > 1 and not all(free for _, free in some)
        groups = [[stream for stream, _ in streams]] if together else [[s] for s, _ in streams]
        for group in groups:
            # The arbiter begins with stream 1 where both have a command.
            if together and (steady or self._order):
                group.reverse()
            server = self.kinds.box_server(self.machine, group, in_turn=together and steady)
            self.servers.append(server)
            self.actors.append(server)
            if together and not steady:
                self.choices.append(server)
            for stream in group:
                for count in stream.counters:
                    count.waiting = server
                if stream.channel is not None:
                    stream.channel.producer = server
                else:
                    port = int(stream.name.rsplit(" ", 1)[1])
                    end = Input(AGCU, (index,), port)
                    stream.port = self.port(end, server, _INPUT_ENTRIES, FilterProgram())

    def _add_merge(self, root: Junction) -> None:
        counts = self._nets.packets[root]
        merge = self.kinds.merge(self.machine, str(root), self.channels[root], counts)
        merge.channel.producer = merge
        for turn in range(len(counts)):
            end = MergeInput(root, turn)
            lengths = None
            if not root.tokens and end in self._nets.feeds:
                lengths = self.packets.arriving(end).lengths
            consumer = self.kinds.merge_consumer(str(end), merge, lengths)
            merge.consumers.append(consumer)
            self.consumers.append(consumer)
        self._merges[root] = merge

    def _parts(self) -> list[Part]:
        """Every stateful element of the run."""
        streams = [stream for server in self.servers for stream in server.streams]
        found: list[Part] = [*self.channels.values(), *self._inner, *streams]
        found += [*self.actors, *self._merges.values(), *self._inputs.values(), *self.consumers]
        return list(dict.fromkeys(found))

    def restart_faults(self) -> list[str]:
        """Reasons, after a run, why further iterations of the program would not equal it."""
        faults = (part.restart_fault() for part in self._parts())
        return [fault for fault in faults if fault is not None]

    def _repeats(self, parts: Sequence[Part], engines: Sequence[Engine]) -> Repeats:
        """Detector of periods of some parts, with the candidates for its pacemaker."""
        return Repeats(self.machine, parts, engines)

    def _groups(self) -> list[list[Part]]:
        """Parts that are connected with one another, each group in order."""
        return connected(self._parts())

    def run(self, *, whole: bool = False) -> None:
        """Run until nothing can move; AGCUs leave their preferred order only as a last resort.

        Groups of parts that are not connected run one after the other.

        Parameters
        ----------
        whole : bool
            Skip no periods.
        """
        for parts in self._groups():
            actors = [each for each in parts if isinstance(each, Actor)]
            for actor in actors:
                self.machine.wake(actor)
            engines = [each for each in actors if isinstance(each, Engine) and not whole]
            repeats = self._repeats(parts, engines)
            choices = [server for server in self.choices if server in actors]
            self.machine.run()
            while repeats.go_on() or any(server.give_way() for server in choices):
                self.machine.run()


#: Actors of each kind of unit: a function of the network, the position and the program of a unit,
#: which adds them with their ports and channels.
UNIT_ACTORS: dict[UnitKind, Callable[[Network, tuple[int, ...], Any], None]] = {
    PCU: lambda network, at, unit: network._add_pcu(at, unit),
    PMU: lambda network, at, unit: network._add_pmu(at, unit),
    AGCU: lambda network, at, unit: network._add_agcu(at, unit),
}
