"""Netlist extraction: every net of a configured chip, traced from its source through the switches.

Independent of placer and router: it applies only the rules of `docs/switch.md`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.places import agcu_places
from hw.arch.ports import Direction, Link, Port, UnitPort
from hw.arch.unit_kind import AGCU, UnitKind
from sw.chip_program import ChipProgram

__all__ = ["DeadEnd", "Input", "Junction", "MergeInput", "Net", "Nets", "Output", "find_nets"]

#: Depth of the buffer at every input of a switch.
_ENTRIES = 2
#: Most payloads by which a fork's input buffer lets one branch be ahead of another.
_FORK_LEAD = 1


@dataclasses.dataclass(frozen=True)
class _UnitPin:
    """A pin: a port of a unit in a net.

    Parameters
    ----------
    kind : UnitKind
    at : tuple of int
        Row and column, or the number of the AGCU.
    port : int
    tokens : bool
        Whether it is a port of the token network.
    """

    kind: UnitKind
    at: tuple[int, ...]
    port: int
    tokens: bool = False

    @property
    def unit(self) -> str:
        """Name of the unit in messages."""
        return f"{self.kind} {self.at if len(self.at) > 1 else self.at[0]}"


class Output(_UnitPin):
    """Output pin of a unit."""

    def __str__(self) -> str:
        return (
            f"{self.unit} {f'token {self.port}' if self.tokens else self.kind.outputs(self.port)}"
        )


class Input(_UnitPin):
    """Input pin of a unit."""

    def __str__(self) -> str:
        port = f"token port {self.port}" if self.tokens else self.kind.inputs(self.port)
        return f"{self.unit} {port}"


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
    before_forks : int
        Most payloads of buffering in switches on the way to a destination that ``leaves`` leaves
        out, as it lies before a fork.
    ways : tuple of tuple of (row, column)
        Per leaf, the switches whose input buffers lie on the way to it, in order.
    """

    root: Root
    leaves: tuple[tuple[Leaf, int], ...]
    before_forks: int = 0
    ways: tuple[tuple[tuple[int, int], ...], ...] = ()


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
    driven : collection of ((row, column), Port, bool)
        Switch outputs on the nets: the switch, the output, whether it is a token switch.
    """

    nets: Mapping[Root, Net]
    feeds: Mapping[Input | MergeInput, Root]
    packets: Mapping[Junction, tuple[int, ...]]
    driven: Collection[tuple[tuple[int, int], Port, bool]]


def enabled_outputs(program: ChipProgram) -> Iterator[Output]:
    """Outputs of units that send payloads."""
    for kind, at, unit in program.units():
        yield from (Output(kind, at, port) for port in unit.outputs)
        yield from (Output(kind, at, port, tokens=True) for port in unit.token_outputs)


def enabled_inputs(program: ChipProgram) -> Iterator[Input]:
    """Inputs of units that take payloads."""
    for kind, at, unit in program.units():
        yield from (Input(kind, at, port) for port in unit.inputs)
        if kind is AGCU:
            ports = range(program.config.token_tracks)
            yield from (Input(kind, at, port, tokens=True) for port in ports)


class _Path(NamedTuple):
    """Way of a net: its buffering in payloads since the last fork, and its switches."""

    room: int = 0
    way: tuple[tuple[int, int], ...] = ()

    @property
    def whole(self) -> int:
        """Buffering in payloads in all."""
        return _ENTRIES * len(self.way)


class _Tracer:
    """Forward traversal of an image's switches."""

    def __init__(self, program: ChipProgram) -> None:
        self._program = program
        self._chip = program.config
        self._links = [
            ((place.row, place.column(self._chip)), Direction[place.side.upper()])
            for place in agcu_places(self._chip)
        ]
        self.junctions: dict[Junction, tuple[int, ...]] = {}
        self.driven: set[tuple[tuple[int, int], Port, bool]] = set()

    def net(self, root: Root) -> Net:
        """Trace the net of a source."""
        if isinstance(root, Output) and root.kind is AGCU:
            at, side = self._links[root.at[0]]
            paths = self._enter(at, Link(side, root.port), root.tokens, _Path())
        else:
            row, column = root.at
            port = root.port if isinstance(root, Junction) else UnitPort(root.port)
            trace = self._leave if isinstance(root, Junction) else self._enter
            paths = trace((row, column), port, root.tokens, _Path())
        found = list(paths)
        dropped = max((path.whole - path.room for _, path in found), default=0)
        ways = tuple(path.way for _, path in found)
        return Net(root, tuple((leaf, path.room) for leaf, path in found), dropped, ways)

    def _enter(
        self, at: tuple[int, int], port: Port, tokens: bool, path: _Path
    ) -> Iterator[tuple[Leaf, _Path]]:
        """Trace payloads that enter a switch at an input.

        It ends: each input has one driver, so a path without a junction meets no input twice.
        """
        tile = self._program.tiles.get(at)
        switch = tile and (tile.tokens if tokens else tile.vectors)
        branches = switch.branches(port) if switch else ()
        way = (*path.way, at)
        if not switch or not branches:
            kind = "token switch" if tokens else "switch"
            end = DeadEnd(f"{kind} {at}, which sends {port} nowhere")
            yield end, _Path(path.room + _ENTRIES, way)
            return
        # A payload reaches no branch of a fork before all branches have taken the previous ones,
        # so only buffering after the last fork lets one branch be ahead of another.
        path = _Path(_FORK_LEAD if len(branches) > 1 else path.room + _ENTRIES, way)
        for branch in branches:
            rotation = switch.rotation(branch)
            if len(rotation) == 1:
                yield from self._leave(at, branch, tokens, path)
                continue
            junction = Junction(at, branch, tokens)
            self.junctions[junction] = tuple(turn.packets for turn in rotation)
            turn = [turn.source for turn in rotation].index(port)
            yield MergeInput(junction, turn), path

    def _leave(
        self, at: tuple[int, int], port: Port, tokens: bool, path: _Path
    ) -> Iterator[tuple[Leaf, _Path]]:
        """Trace payloads that leave a switch at an output."""
        self.driven.add((at, port, tokens))
        if isinstance(port, UnitPort):
            yield Input(self._chip.unit_at(*at), at, port.index, tokens), path
            return
        down, right = port.direction.step
        row, column = at[0] + down, at[1] + right
        if 0 <= row < self._chip.rows and 0 <= column < self._chip.columns:
            entry = Link(port.direction.opposite, port.track)
            yield from self._enter((row, column), entry, tokens, path)
        elif (at, port.direction) in self._links and (tokens or port.track < AGCU_STREAMS):
            number = self._links.index((at, port.direction))
            yield Input(AGCU, (number,), port.track, tokens), path
        else:
            yield DeadEnd(f"edge of the chip at {at} {port}"), path


def find_nets(program: ChipProgram, roots: Iterable[Output] | None = None) -> Nets:
    """Extract the nets of an image that begin at the given outputs: all of the enabled units."""
    tracer = _Tracer(program)
    nets: dict[Root, Net] = {}
    feeds: dict[Input | MergeInput, Root] = {}
    left: list[Root] = list(enabled_outputs(program) if roots is None else roots)
    while left:
        root = left.pop(0)
        if root in nets:
            continue
        net = nets[root] = tracer.net(root)
        for leaf, _ in net.leaves:
            if isinstance(leaf, DeadEnd):
                continue
            feeds[leaf] = root
            if isinstance(leaf, MergeInput):
                left.append(leaf.junction)
    return Nets(nets, feeds, tracer.junctions, tracer.driven)
