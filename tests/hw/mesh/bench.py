"""Actors at every port of a switch or a mesh of them, and what they saw."""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from hw.arch.ports import Direction, Link, Port, SwitchPorts, UnitPort
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.lib.stream import vector_layout
from hw.mesh.switch import Switch

WIDTH = 8
VECTOR = vector_layout(WIDTH)
TOKEN = 0
#: Cycles without a transfer after which a run has ended.
QUIET = 64
NORTH, EAST, SOUTH, WEST = Direction

ONE = SwitchPorts(tracks=1, unit_outputs=1, unit_inputs=2)
THREE = SwitchPorts(tracks=3, unit_outputs=2, unit_inputs=3)

#: A port of one switch of a mesh.
Place = tuple[Hashable, Port]


def vector(value: int, *, last: bool) -> int:
    """Bits of a vector."""
    return value | last << WIDTH


def packets(rng: random.Random, lengths: Sequence[int]) -> list[int]:
    """Vectors of random packets of these lengths."""
    return [
        vector(rng.randrange(1 << WIDTH), last=position == length - 1)
        for length in lengths
        for position in range(length)
    ]


def switch(ports: SwitchPorts, payload_shape: Any = VECTOR) -> Switch:
    return Switch(
        payload_shape=payload_shape,
        tracks=ports.tracks,
        unit_outputs=ports.unit_outputs,
        unit_inputs=ports.unit_inputs,
        link_turns=ports.link_turns,
        unit_turns=ports.unit_turns,
    )


def program(
    ports: SwitchPorts, routes: Mapping[Port, Port | Sequence[tuple[Port, int]]]
) -> SwitchProgram:
    """Program of a switch: for each output its source, or its turns as (source, packets)."""
    outputs = []
    for output, turns in routes.items():
        turns = [(turns, 1)] if isinstance(turns, Link | UnitPort) else turns
        outputs.append(OutputProgram(output, tuple(Turn(*turn) for turn in turns)))
    return SwitchProgram(ports, outputs)


class Mesh(Elaboratable):
    """Switches, and the wires between those that are neighbours."""

    def __init__(
        self, switches: Mapping[Hashable, Switch], wires: Mapping[Place, Place] | None = None
    ) -> None:
        self.switches = switches
        self.wires = wires or {}

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for index, each in enumerate(self.switches.values()):
            m.submodules[f"switch_{index}"] = each
        for (source, output), (sink, entrance) in self.wires.items():
            connect(m, self.switches[source].output(output), self.switches[sink].input(entrance))
        return m

    def entrances(self) -> list[Place]:
        inside = set(self.wires.values())
        places = [(name, port) for name, it in self.switches.items() for port in it.ports.inputs]
        return [place for place in places if place not in inside]

    def exits(self) -> list[Place]:
        places = [(name, port) for name, it in self.switches.items() for port in it.ports.outputs]
        return [place for place in places if place not in self.wires]


@dataclass
class Traffic:
    """What the actors do in one run."""

    programs: Mapping[Hashable, SwitchProgram]
    sends: Mapping[Place, Sequence[int]]
    seed: int = 0
    #: Probability that a source pauses before a payload, and that a sink is not ready.
    idle: float = 0.0
    stall: float = 0.0
    #: Most payloads that a sink takes; without an entry, all.
    limits: Mapping[Place, int] = field(default_factory=dict)


@dataclass
class Seen:
    """Transfers at the ports, each with its cycle."""

    accepted: dict[Place, list[int]] = field(default_factory=dict)
    taken: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)
    moved: list[int] = field(default_factory=list)

    def payloads(self) -> dict[Place, list[int]]:
        """Sequences of payloads at the outputs that had any."""
        return {
            place: [payload for _, payload in events]
            for place, events in self.taken.items()
            if events
        }

    def transfers(self) -> int:
        """Transfers at all ports."""
        return sum(map(len, (*self.accepted.values(), *self.taken.values())))

    def cycles(self, place: Place) -> list[int]:
        return [cycle for cycle, _ in self.taken[place]]


class Bench:
    """One simulation of a mesh, run as often as wanted, from reset each time."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.traffic = Traffic({}, {})
        self.seen: Seen | None = None
        self.simulator = Simulator(mesh)
        self.simulator.add_clock(1)
        self.simulator.add_testbench(self._configure)
        for place in mesh.entrances():
            self.simulator.add_testbench(self._source(place), background=True)
        for place in mesh.exits():
            self.simulator.add_testbench(self._sink(place), background=True)
        for each in mesh.switches.values():
            self.simulator.add_testbench(self._watcher(each), background=True)

    async def _configure(self, ctx: Any) -> None:
        for name, each in self.mesh.switches.items():
            program = self.traffic.programs.get(name, SwitchProgram(each.ports))
            ctx.set(Value.cast(each.config), program.pack())

    @property
    def ports(self) -> SwitchPorts:
        """Ports of the only switch."""
        (each,) = self.mesh.switches.values()
        return each.ports

    def program(self, routes: Mapping[Port, Any]) -> dict[Hashable, SwitchProgram]:
        """Programs of the only switch, whose name is 0."""
        return {0: program(self.ports, routes)}

    def _random(self, place: Place) -> random.Random:
        return random.Random(f"{self.traffic.seed} {place}")

    def _source(self, place: Place) -> Callable[[Any], Any]:
        name, port = place
        stream = self.mesh.switches[name].input(port)
        payload = Value.cast(stream.payload)

        async def source(ctx: Any) -> None:
            rng = self._random(place)
            log = self.seen.accepted.setdefault(place, [])
            cycle = 0
            for item in self.traffic.sends.get(place, ()):
                while rng.random() < self.traffic.idle:
                    ctx.set(payload, rng.getrandbits(len(payload)))
                    await ctx.tick()
                    cycle += 1
                ctx.set(stream.valid, 1)
                ctx.set(payload, item)
                ready = 0
                while not ready:
                    _, _, ready = await ctx.tick().sample(stream.ready)
                    cycle += 1
                log.append(cycle - 1)
                ctx.set(stream.valid, 0)

        return source

    def _sink(self, place: Place) -> Callable[[Any], Any]:
        name, port = place
        stream = self.mesh.switches[name].output(port)
        payload = Value.cast(stream.payload)

        async def sink(ctx: Any) -> None:
            rng = self._random(place)
            log = self.seen.taken.setdefault(place, [])
            cycle = 0
            while len(log) < self.traffic.limits.get(place, 1 << 30):
                ready = rng.random() >= self.traffic.stall
                ctx.set(stream.ready, ready)
                _, _, valid, item = await ctx.tick().sample(stream.valid, payload)
                if valid and ready:
                    log.append((cycle, item))
                cycle += 1
            ctx.set(stream.ready, 0)

        return sink

    def _watcher(self, each: Switch) -> Callable[[Any], Any]:
        async def watcher(ctx: Any) -> None:
            cycle = 0
            async for _, _, moved in ctx.tick().sample(each.o_moved):
                if moved:
                    self.seen.moved.append(cycle)
                cycle += 1

        return watcher

    def run(self, traffic: Traffic, *, cycles: int) -> Seen:
        """What happens from reset: in so many cycles, or until nothing has for a while."""
        if self.seen is not None:
            self.simulator.reset()
        self.traffic = traffic
        self.seen = seen = Seen()
        transfers = -1
        for cycle in range(0, cycles, QUIET):
            self.simulator.run_until(min(cycle + QUIET, cycles))
            before, transfers = transfers, seen.transfers()
            if transfers == before:
                break
        return seen


def grid(rows: int, columns: int, ports: SwitchPorts) -> Mesh:
    """Mesh of rows × columns equal switches; the links at its edges stay outside."""
    steps = {NORTH: (-1, 0), EAST: (0, 1), SOUTH: (1, 0), WEST: (0, -1)}
    switches = {(row, column): switch(ports) for row in range(rows) for column in range(columns)}
    wires: dict[Place, Place] = {}
    for row, column in switches:
        for side, (down, right) in steps.items():
            neighbour = (row + down, column + right)
            if neighbour in switches:
                for track in range(ports.tracks):
                    wires[(row, column), Link(side, track)] = (
                        neighbour,
                        Link(side.opposite, track),
                    )
    return Mesh(switches, wires)


__all__ = [
    "EAST",
    "NORTH",
    "ONE",
    "SOUTH",
    "THREE",
    "TOKEN",
    "VECTOR",
    "WEST",
    "WIDTH",
    "Bench",
    "Mesh",
    "Place",
    "Seen",
    "Traffic",
    "UnitPort",
    "grid",
    "packets",
    "program",
    "switch",
    "vector",
]
