"""Lowering of a stage graph to unit programs and nets: one rule per kind of stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hw.arch.agcu import AGCU_STREAMS, AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor
from hw.arch.gather.index_program import IndexProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.ports import UnitProgram
from hw.arch.words.pmu_word import TokenSource
from sw.netlist import Net, Netlist, Pin
from sw.passes.pack import Home
from sw.stages.stage_graph import Hold, Lanes, Load, Product, Socket, StageGraph, Store, Walk

__all__ = ["lower"]

_READERS = (TokenSource.R0, TokenSource.R1)


def lower(graph: StageGraph, homes: Mapping[str, Home], config: ChipConfig) -> Netlist:
    """Generate the programs of all units of a stage graph, and the nets.

    Parameters
    ----------
    graph : StageGraph
    homes : mapping of str to Home
        Allocation of each `Hold`.
    config : ChipConfig
    """
    named: dict[str, UnitProgram] = {}
    named.update((name, stage.program) for name, stage in graph.of(Product))
    named.update((name, stage.program) for name, stage in graph.of(Lanes))
    for pmu in sorted({home.pmu for home in homes.values()}):
        named[f"pmu{pmu}"] = _pmu(graph, homes, pmu)
    agcus = [each.agcu for kind in (Load, Store) for _, each in graph.of(kind)]
    fixed = {f"agcu{agcu}": agcu for agcu in sorted(set(agcus))}
    for name, agcu in fixed.items():
        named[name] = _agcu(graph, homes, agcu, config)
    return Netlist(named, _nets(graph, homes), fixed)


def _engine(hold: Hold, home: Home, walk: Walk) -> EngineProgram:
    """Program of the engine that takes a walk over a buffer."""
    element = walk.element_bytes or hold.element_bytes
    ring = SlotRing(
        buffer=home.number,
        base=home.base_bytes // element + walk.offset,
        stride=hold.slot_bytes // element if home.slots > 1 else 0,
        count=home.slots,
    )
    fields = {field.name: getattr(walk, field.name) for field in dataclasses.fields(walk)}
    del fields["offset"]
    return EngineProgram(ring=ring, **{**fields, "element_bytes": element})


def _pmu(graph: StageGraph, homes: Mapping[str, Home], pmu: int) -> PmuProgram:
    """Program of a PMU: the engines and tokens of the buffers in it."""
    writers: list[EngineProgram | None] = [None] * len(PmuInput)
    readers: list[EngineProgram | None] = [None] * len(PmuOutput)
    tokens = [TokenSource.OFF] * len(PmuOutput)
    indexed: IndexProgram | None = None
    fed = {sink: load.readers for name, load in graph.of(Load) for sink in graph.sinks(name)}
    for name, hold in graph.of(Hold):
        home = homes[name]
        if home.pmu != pmu:
            continue
        indexed = indexed or hold.indexed
        for number, walk in enumerate(hold.writes):
            writers[home.writer + number] = _engine(hold, home, walk)
            for reader in range(fed.get(Socket(name, number), 0)):
                tokens[home.token + number + reader] = _READERS[home.reader + reader]
        for number, walk in enumerate(hold.reads):
            readers[home.reader + number] = _engine(hold, home, walk)
    return PmuProgram(
        writers=(writers[0], writers[1]),
        readers=(readers[0], readers[1]),
        tokens=(tokens[0], tokens[1]),
        indexed=indexed,
    )


def _agcu(
    graph: StageGraph, homes: Mapping[str, Home], agcu: int, config: ChipConfig
) -> AgcuProgram:
    """Program of an AGCU: its load and store streams, and the free slots that loads may fill."""
    loads: list[IssuerProgram | None] = [None] * AGCU_STREAMS
    stores: list[IssuerProgram | None] = [None]
    descriptors: list[tuple[Descriptor, int]] = []
    credits = [0] * config.token_tracks
    for name, load in graph.of(Load):
        if load.agcu == agcu:
            waits = (Wait(load.port, load.slots * load.takers * load.readers),)
            loads[load.stream] = _issuer(load, waits, descriptors)
            slots = sum(homes[sink.stage].slots for sink in graph.sinks(name))
            credits[load.port] = slots * load.readers
    for _, store in graph.of(Store):
        if store.agcu == agcu:
            stores += [None] * (store.stream + 1 - len(stores))
            stores[store.stream] = _issuer(store, (), descriptors)
    return AgcuProgram(
        loads=tuple(loads),
        stores=tuple(stores),
        descriptors=tuple(descriptors),
        credits=tuple(credits[: config.token_tracks]),
    )


def _issuer(
    boxes: Load | Store, waits: tuple[Wait, ...], descriptors: list[tuple[Descriptor, int]]
) -> IssuerProgram:
    """Program of a stream, whose descriptors are added to those of the AGCU."""
    first, *following = (
        IssuerProgram(len(descriptors) + number, loops, waits, boxes.index)
        for number, (_, _, loops) in enumerate(boxes.lists)
    )
    descriptors += [(descriptor, argument) for descriptor, argument, _ in boxes.lists]
    return dataclasses.replace(first, following=tuple(following))


def _nets(graph: StageGraph, homes: Mapping[str, Home]) -> tuple[Net, ...]:
    """Nets of all streams; behind that of a load, the net of the tokens of its freed slots."""

    def pin(socket: Socket, *, sink: bool) -> Pin:
        stage = graph.stages[socket.stage]
        match stage:
            case Load() | Store():
                ports = AgcuInput if sink else AgcuOutput
                return Pin(f"agcu{stage.agcu}", ports(stage.stream ^ socket.port))
            case Hold():
                home = homes[socket.stage]
                if sink:
                    return Pin(f"pmu{home.pmu}", PmuInput(home.writer + socket.port))
                return Pin(f"pmu{home.pmu}", PmuOutput(home.reader + socket.port))
        return Pin(socket.stage, socket.port)

    nets = []
    for stream in graph.streams:
        sources = tuple((pin(socket, sink=False), packets) for socket, packets in stream.sources)
        sinks = tuple(pin(each, sink=True) for each in stream.sinks)
        nets.append(Net(stream.name, sources, sinks))
        first = stream.sources[0][0].stage
        load = graph.stages[first]
        if isinstance(load, Load):
            tokens = (
                Pin(f"pmu{homes[each.stage].pmu}", homes[each.stage].token + each.port + reader)
                for each in stream.sinks
                for reader in range(load.readers)
            )
            pins = tuple((each, load.slots) for each in tokens)
            port = Pin(f"agcu{load.agcu}", load.port)
            nets.append(Net(f"{first}_free", pins, (port,), tokens=True))
    return tuple(nets)
