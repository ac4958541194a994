"""Actors and channels of a decoded image, connected for a token-level run."""

from __future__ import annotations

from hw.arch.pcu import FilterProgram, PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.pmu_word import TokenSource
from sw.chip_program import ChipProgram
from sw.fabric.nets import DeadEnd, Input, Junction, MergeInput, Nets, Output
from sw.prove.credits import load_is_free, store_is_free
from sw.prove.machine import Actor, Channel, Machine, Part, Port, Taker
from sw.prove.portals import (
    BoxServer,
    BoxStream,
    Merge,
    MergeTaker,
    StoredTokens,
    TokenCount,
)
from sw.prove.repeats import Repeats
from sw.prove.stream_packets import StreamPackets
from sw.prove.unit_actors import DeadTaker, Engine, Grid, ReadEngine, ReadOut, WriteEngine
from sw.prove.unrolled_loops import MOST_STEPS, box_points

__all__ = ["Network"]

#: Depth of the buffer at a vector output, in payloads.
_OUTPUT_ENTRIES = {"pcu": 2, "pmu": 8}
#: Depth of the buffer before an engine, an array's activations or a store, in payloads.
_INPUT_ENTRIES = 2
_ENGINES = ("W0", "W1", "R0", "R1")


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
    """

    def __init__(
        self,
        program: ChipProgram,
        nets: Nets,
        packets: StreamPackets,
        order: int = 0,
        limit: int = MOST_STEPS,
    ) -> None:
        self.machine = Machine(limit)
        self.actors: list[Actor] = []
        self.grids: list[Grid] = []
        self.stored: list[StoredTokens] = []
        self.takers: list[Taker] = []
        self.servers: list[BoxServer] = []
        self.choices: list[BoxServer] = []
        self._program = program
        self._chip = program.config
        self._nets = nets
        self._packets = packets
        self._order = order
        self._inputs: dict[Input, Taker] = {}
        self.channels: dict[Output | Junction, Channel] = {}
        self._merges: dict[Junction, Merge] = {}
        for root in nets.nets:
            self.channels[root] = Channel(self.machine, str(root))
        for at, tile in program.tiles.items():
            if isinstance(tile.unit, PmuProgram):
                self._add_pmu(at, tile.unit)
            elif isinstance(tile.unit, PcuProgram):
                self._add_pcu(at, tile.unit)
        for index in program.agcus:
            self._add_agcu(index)
        for root in nets.nets:
            if isinstance(root, Junction):
                self._add_merge(root)
        for root, net in nets.nets.items():
            entries = self._entries(root) if len(net.leaves) == 1 else 0
            for leaf, room in net.leaves:
                self.channels[root].attach(self._taker(leaf), room + entries)

    def _entries(self, root: Output | Junction) -> int:
        """Depth of the buffer at an output, in payloads."""
        if isinstance(root, Junction) or root.kind == "agcu":
            return 0  # a load has none, because the streams of an AGCU share the buffer
        return 2 if root.tokens else _OUTPUT_ENTRIES[root.kind]

    def _taker(self, leaf: Input | MergeInput | DeadEnd) -> Taker:
        if isinstance(leaf, MergeInput):
            return self._merges[leaf.junction].takers[leaf.turn]
        taker = self._inputs[leaf] if isinstance(leaf, Input) else DeadTaker(str(leaf))
        self.takers.append(taker)
        return taker

    def _port(
        self, end: Input, core: Engine | Grid | BoxServer, entries: int, taken: FilterProgram
    ) -> Port:
        port = Port(
            self.machine,
            str(end),
            core,
            entries,
            self._packets.arriving(end) if taken.modulus > 1 else None,
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
            name = f"PMU {at} {_ENGINES[number]}"
            if number < 2:
                writer = WriteEngine(self.machine, name, program)
                taken = FilterProgram(program.modulus, program.index)
                end = Input("pmu", at, number)
                writer.port = self._port(end, writer, _INPUT_ENTRIES, taken)
                writer.lag = program.ring.count
                engines.append(writer)
            else:
                reader = ReadEngine(self.machine, name, program)
                reader.channel = self.channels[Output("pmu", at, number - 2)]
                reader.channel.producer = reader
                engines.append(reader)
        for number, engine in enumerate(engines):
            if engine is None:
                continue
            others = engines[2:] if number < 2 else engines[:2]
            buffer = engine.program.ring.buffer
            engine.others = [
                other for other in others if other and other.program.ring.buffer == buffer
            ]
            for output, source in enumerate(unit.tokens):
                if source is TokenSource(number + 1):
                    channel = self.channels[Output("pmu", at, output, tokens=True)]
                    channel.producer = engine
                    engine.tokens.append(channel)
            self.actors.append(engine)

    def _add_pcu(self, at: tuple[int, ...], unit: PcuProgram) -> None:
        tiles = self._packets.tiles(at)
        grid = Grid(self.machine, f"PCU {at}", self._chip, tiles)
        grid.activation = self._port(Input("pcu", at, 0), grid, _INPUT_ENTRIES, unit.activation)
        gathered = max(self._chip.grid_columns, 4)
        grid.weight = self._port(Input("pcu", at, 1), grid, gathered, unit.weight)
        sizes = self._packets.leaving(Output("pcu", at, 0)).lengths
        grid.readout = ReadOut(self.machine, f"PCU {at} result", grid, sizes)
        grid.readout.channel = self.channels[Output("pcu", at, 0)]
        grid.readout.channel.producer = grid.readout
        self.grids.append(grid)
        self.actors += [grid, grid.readout]

    def _add_agcu(self, index: int) -> None:
        agcu = self._program.agcus[index]
        counts = []
        for port in range(self._chip.token_tracks):
            end = Input("agcu", (index,), port, tokens=True)
            credit = agcu.credits[port] if port < len(agcu.credits) else 0
            counts.append(TokenCount(self.machine, str(end), credit))
            self._inputs[end] = counts[-1]
        for store in (False, True):
            streams: list[tuple[BoxStream, bool]] = []
            steady = True
            for port, issuer in enumerate(agcu.stores if store else agcu.loads):
                if issuer is None:
                    continue
                vectors = agcu.descriptors[issuer.descriptor][0].box_bytes // (
                    self._chip.width_bits // 8
                )
                stream = BoxStream(
                    f"AGCU {index} {'store' if store else 'load'} {port}",
                    len(box_points(issuer)),
                    vectors,
                    [(counts[wait.port], wait.tokens) for wait in issuer.waits],
                )
                if store:
                    free = store_is_free(self._program, self._nets, index, port, vectors)
                    if port in agcu.stored:
                        channel = self.channels[Output("agcu", (index,), port, tokens=True)]
                        stream.stored = StoredTokens(self.machine, f"AGCU {index} stored {port}",
                                                     channel)  # fmt: skip
                        channel.producer = stream.stored
                        self.stored.append(stream.stored)
                        self.actors.append(stream.stored)
                else:
                    root = Output("agcu", (index,), port)
                    stream.channel = self.channels[root]
                    free = load_is_free(self._program, self._nets, root, issuer, vectors)
                streams.append((stream, free))
                # Issuers without waits and without empty loops stay in lockstep.
                least = min(low for low, _ in issuer.chain().counts())
                steady = steady and not issuer.waits and least > 0
            self._serve(index, streams, steady=steady)

    def _serve(self, index: int, streams: list[tuple[BoxStream, bool]], *, steady: bool) -> None:
        """Add the servers of one side of an AGCU: one, or one per stream if the order is free."""
        some = [(stream, free) for stream, free in streams if stream.boxes]
        together = len(some) > 1 and not all(free for _, free in some)
        groups = [[stream for stream, _ in streams]] if together else [[s] for s, _ in streams]
        for group in groups:
            # The arbiter begins with stream 1 where both have a command.
            if together and (steady or self._order):
                group.reverse()
            server = BoxServer(self.machine, group, in_turn=together and steady)
            self.servers.append(server)
            self.actors.append(server)
            if together and not steady:
                self.choices.append(server)
            for stream in group:
                for count, _ in stream.waits:
                    count.waiting = server
                if stream.channel is not None:
                    stream.channel.producer = server
                else:
                    port = int(stream.name.rsplit(" ", 1)[1])
                    end = Input("agcu", (index,), port)
                    stream.port = self._port(end, server, _INPUT_ENTRIES, FilterProgram())

    def _add_merge(self, root: Junction) -> None:
        counts = self._nets.packets[root]
        merge = Merge(self.machine, str(root), self.channels[root], counts)
        merge.channel.producer = merge
        for turn in range(len(counts)):
            end = MergeInput(root, turn)
            lengths = None
            if not root.tokens and end in self._nets.feeds:
                lengths = self._packets.arriving(end).lengths
            taker = MergeTaker(str(end), merge, lengths)
            merge.takers.append(taker)
            self.takers.append(taker)
        self._merges[root] = merge

    def _parts(self) -> list[Part]:
        """Every stateful element of the run."""
        streams = [stream for server in self.servers for stream in server.streams]
        found: list[Part] = [*self.channels.values(), *streams]
        for each in (*self.actors, *self._merges.values(), *self._inputs.values(), *self.takers):
            if isinstance(each, Part):
                found.append(each)
        return list(dict.fromkeys(found))

    def run(self, *, whole: bool = False) -> None:
        """Run until nothing can move; AGCUs leave their preferred order only as a last resort.

        Parameters
        ----------
        whole : bool
            Skip no periods.
        """
        for actor in self.actors:
            self.machine.wake(actor)
        engines = [each for each in self.actors if isinstance(each, Engine) and not whole]
        repeats = Repeats(self.machine, self._parts(), engines)
        self.machine.run()
        while repeats.go_on() or any(server.give_way() for server in self.choices):
            self.machine.run()
