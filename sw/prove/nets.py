"""Nets of a decoded image: for each output, the inputs it reaches and the buffering on the path."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from hw.arch.agcu import AGCU_STREAMS, IssuerProgram
from hw.arch.pcu import PcuProgram
from hw.arch.places import agcu_places
from hw.arch.pmu import PmuProgram
from hw.arch.pmu_word import TokenSource
from hw.arch.ports import Direction, Link, Port, UnitPort
from hw.arch.switch import SwitchProgram
from sw.chip_program import ChipProgram

__all__ = ["DeadEnd", "Input", "Junction", "MergeInput", "Net", "Nets", "Output", "find_nets"]

#: Depth of the buffer at every input of a switch.
_ENTRIES = 2
#: Most payloads by which a fork's input buffer lets one branch be ahead of another.
_FORK_LEAD = 1
_INPUTS = {"pcu": ("activation", "weight", "auxiliary"), "pmu": ("W0", "W1")}
_OUTPUTS = {"pcu": ("result",), "pmu": ("R0", "R1")}
_STEPS = {
    Direction.NORTH: (-1, 0),
    Direction.EAST: (0, 1),
    Direction.SOUTH: (1, 0),
    Direction.WEST: (0, -1),
}


@dataclasses.dataclass(frozen=True, order=True)
class _UnitEnd:
    """A pin: a port of a unit in a net.

    Parameters
    ----------
    kind : str
        ``"pcu"``, ``"pmu"`` or ``"agcu"``.
    at : tuple of int
        Row and column, or the number of the AGCU.
    port : int
    tokens : bool
        Whether it is a port of the token network.
    """

    kind: str
    at: tuple[int, ...]
    port: int
    tokens: bool = False

    def _named(self, port: str) -> str:
        unit = f"AGCU {self.at[0]}" if self.kind == "agcu" else f"{self.kind.upper()} {self.at}"
        return f"{unit} {port}"


class Output(_UnitEnd):
    """Output pin of a unit."""

    def __str__(self) -> str:
        if self.kind == "agcu":
            return self._named(f"{'stored' if self.tokens else 'load'} {self.port}")
        return self._named(f"token {self.port}" if self.tokens else _OUTPUTS[self.kind][self.port])


class Input(_UnitEnd):
    """Input pin of a unit."""

    def __str__(self) -> str:
        if self.kind == "agcu":
            return self._named(f"{'token port' if self.tokens else 'store'} {self.port}")
        return self._named(_INPUTS[self.kind][self.port])


@dataclasses.dataclass(frozen=True, order=True)
class Junction:
    """Switch output that merges several sources.

    Parameters
    ----------
    at : tuple of int
        Row and column of the switch.
    port : Link or UnitPort
    tokens : bool
    """

    at: tuple[int, ...]
    port: Port
    tokens: bool = False

    def __str__(self) -> str:
        return f"{'token ' if self.tokens else ''}merge at {self.at} to {self.port}"


@dataclasses.dataclass(frozen=True, order=True)
class MergeInput:
    """Input of a junction for one turn of its rotation."""

    junction: Junction
    turn: int

    def __str__(self) -> str:
        return f"turn {self.turn} of {self.junction}"


@dataclasses.dataclass(frozen=True, order=True)
class DeadEnd:
    """A destination that never accepts a payload.

    Parameters
    ----------
    what : str
        Its description in messages.
    """

    what: str

    def __str__(self) -> str:
        return self.what


Root = Output | Junction
Leaf = Input | MergeInput | DeadEnd


@dataclasses.dataclass(frozen=True)
class Net:
    """A stream from its single source to all its destinations.

    Parameters
    ----------
    root : Output or Junction
    leaves : tuple of (Input or MergeInput or DeadEnd, int)
        Destinations, each with the buffering in payloads between the last fork and it, at most
        that of the switches.
    """

    root: Root
    leaves: tuple[tuple[Leaf, int], ...]


@dataclasses.dataclass(frozen=True)
class Nets:
    """All nets of an image, in both directions.

    Parameters
    ----------
    nets : mapping of Output or Junction to Net
    feeds : mapping of Input or MergeInput to Output or Junction
        Source of each input that a net reaches.
    packets : mapping of Junction to tuple of int
        Packets per turn of each junction's rotation.
    """

    nets: Mapping[Root, Net]
    feeds: Mapping[Input | MergeInput, Root]
    packets: Mapping[Junction, tuple[int, ...]]


def outputs(program: ChipProgram) -> Iterator[Output]:
    """Outputs of the enabled units."""
    for at, tile in program.tiles.items():
        if isinstance(tile.unit, PcuProgram):
            yield Output("pcu", at, 0)
        elif isinstance(tile.unit, PmuProgram):
            for port, reader in enumerate(tile.unit.readers):
                if reader is not None:
                    yield Output("pmu", at, port)
            for port, source in enumerate(tile.unit.tokens):
                if source is not TokenSource.OFF:
                    yield Output("pmu", at, port, tokens=True)
    for index, agcu in program.agcus.items():
        for port, load in enumerate(agcu.loads):
            if load is not None:
                yield Output("agcu", (index,), port)
        for port in agcu.stored:
            yield Output("agcu", (index,), port, tokens=True)


class _Tracer:
    """Forward traversal of an image's switches."""

    def __init__(self, program: ChipProgram) -> None:
        self._program = program
        self._chip = program.config
        self._portals = {
            (place.row, place.column(self._chip), Direction[place.side.upper()]): index
            for index, place in enumerate(agcu_places(self._chip))
        }
        self.junctions: dict[Junction, tuple[int, ...]] = {}

    def _switch(self, at: tuple[int, ...], tokens: bool) -> SwitchProgram | None:
        tile = self._program.tiles.get((at[0], at[1]))
        if tile is None:
            return None
        return tile.tokens if tokens else tile.vectors

    def net(self, root: Root) -> Net:
        """Trace the net of a source."""
        leaves: list[tuple[Leaf, int]] = []
        if isinstance(root, Junction):
            self._leave(root.at, root.port, root.tokens, 0, leaves, set())
        elif root.kind == "agcu":
            places = agcu_places(self._chip)
            place = places[root.at[0]]
            entry = Link(Direction[place.side.upper()], root.port)
            at = (place.row, place.column(self._chip))
            self._enter(at, entry, root.tokens, 0, leaves, set())
        else:
            self._enter(root.at, UnitPort(root.port), root.tokens, 0, leaves, set())
        return Net(root, tuple(leaves))

    def _enter(
        self,
        at: tuple[int, ...],
        port: Port,
        tokens: bool,
        room: int,
        leaves: list[tuple[Leaf, int]],
        seen: set[tuple[tuple[int, ...], Port]],
    ) -> None:
        """Trace payloads that enter a switch at an input."""
        if (at, port) in seen:
            leaves.append((DeadEnd(f"loop of switches through {at} {port}"), room))
            return
        seen = seen | {(at, port)}
        switch = self._switch(at, tokens)
        branches = switch.branches(port) if switch else ()
        if not branches:
            kind = "token switch" if tokens else "switch"
            leaves.append((DeadEnd(f"{kind} {at}, which sends {port} nowhere"), room + _ENTRIES))
            return
        # A payload reaches no branch of a fork before all branches have taken the previous ones,
        # so only buffering after the last fork lets one branch be ahead of another.
        room = _FORK_LEAD if len(branches) > 1 else room + _ENTRIES
        for branch in branches:
            rotation = switch.rotation(branch) if switch else ()
            if len(rotation) == 1:
                self._leave(at, branch, tokens, room, leaves, seen)
                continue
            junction = Junction(at, branch, tokens)
            self.junctions[junction] = tuple(turn.packets for turn in rotation)
            turn = [turn.source for turn in rotation].index(port)
            leaves.append((MergeInput(junction, turn), room))

    def _leave(
        self,
        at: tuple[int, ...],
        port: Port,
        tokens: bool,
        room: int,
        leaves: list[tuple[Leaf, int]],
        seen: set[tuple[tuple[int, ...], Port]],
    ) -> None:
        """Trace payloads that leave a switch at an output."""
        if isinstance(port, UnitPort):
            kind = self._chip.unit_at(at[0], at[1])
            leaves.append((self._checked(Input(kind, at, port.index)), room))
            return
        down, right = _STEPS[port.direction]
        row, column = at[0] + down, at[1] + right
        if 0 <= row < self._chip.rows and 0 <= column < self._chip.columns:
            entry = Link(port.direction.opposite, port.track)
            self._enter((row, column), entry, tokens, room, leaves, seen)
            return
        portal = self._portals.get((at[0], at[1], port.direction))
        if portal is None or (not tokens and port.track >= AGCU_STREAMS):
            leaves.append((DeadEnd(f"edge of the chip at {at} {port}"), room))
            return
        leaves.append((self._checked(Input("agcu", (portal,), port.track, tokens)), room))

    def _checked(self, end: Input) -> Input | DeadEnd:
        """The input, or a dead end if it never accepts a payload."""
        if end.kind == "agcu":
            agcu = self._program.agcus.get(end.at[0])
            stores: tuple[IssuerProgram | None, ...] = agcu.stores if agcu else ()
            on = end.tokens or (end.port < len(stores) and stores[end.port] is not None)
        else:
            unit = self._program.tiles[end.at[0], end.at[1]].unit
            on = (isinstance(unit, PcuProgram) and end.port < 2) or (
                isinstance(unit, PmuProgram) and unit.writers[end.port] is not None
            )
        return end if on else DeadEnd(f"{end}, which is off")


def find_nets(program: ChipProgram) -> Nets:
    """Extract the nets of an image, starting at every output of an enabled unit."""
    tracer = _Tracer(program)
    nets: dict[Root, Net] = {}
    feeds: dict[Input | MergeInput, Root] = {}
    left: list[Root] = list(outputs(program))
    while left:
        root = left.pop(0)
        if root in nets:
            continue
        net = nets[root] = tracer.net(root)
        for leaf, _ in net.leaves:
            if isinstance(leaf, DeadEnd):
                continue
            feeds[leaf] = root
            if isinstance(leaf, MergeInput) and leaf.junction not in nets:
                left.append(leaf.junction)
    return Nets(nets, feeds, tracer.junctions)
