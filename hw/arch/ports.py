"""Ports of switches and units, and the inputs of a switch that may feed each output."""

import abc
import dataclasses
import enum
import functools
from collections.abc import Sequence

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError, shown
from hw.arch.limits import SWITCH_UNIT_PORTS, TRACKS, TURNS

__all__ = [
    "Direction",
    "Link",
    "Port",
    "SwitchPorts",
    "UnitPort",
    "PortNames",
    "UnitProgram",
    "used",
]


class Direction(enum.IntEnum):
    """Side of a switch; the input of a direction comes from the neighbour on that side."""

    #: Towards row 0.
    NORTH = 0
    #: Towards the last column.
    EAST = 1
    #: Towards the last row.
    SOUTH = 2
    #: Towards column 0.
    WEST = 3

    @property
    def opposite(self) -> "Direction":
        """Direction from that neighbour back to this switch."""
        return Direction((self + 2) % 4)

    @property
    def step(self) -> tuple[int, int]:
        """Offset in rows and columns from a switch to its neighbour on that side."""
        return ((-1, 0), (0, 1), (1, 0), (0, -1))[self]


@dataclasses.dataclass(frozen=True, order=True)
class Link:
    """Link port: input or output of a switch on one track of one direction.

    Parameters
    ----------
    direction : Direction
    track : int
    """

    direction: Direction
    track: int

    def __post_init__(self) -> None:
        if not isinstance(self.direction, Direction):
            raise BadInputError(f"Link direction must be a Direction, not {shown(self.direction)}")
        require_int("Link track", self.track, 0, TRACKS.high - 1)

    def __str__(self) -> str:
        return f"{self.direction.name.lower()} track {self.track}"


@dataclasses.dataclass(frozen=True, order=True)
class UnitPort:
    """Unit port between a switch and its unit: an output or an input of the unit.

    Parameters
    ----------
    index : int
    """

    index: int

    def __post_init__(self) -> None:
        require_int("Unit port index", self.index, 0, SWITCH_UNIT_PORTS.high - 1)

    def __str__(self) -> str:
        return f"unit port {self.index}"


Port = Link | UnitPort


@dataclasses.dataclass(frozen=True)
class SwitchPorts:
    """Ports of a switch and its internal topology.

    Parameters
    ----------
    tracks : int
        Parallel links per direction (`TRACKS`).
    unit_outputs, unit_inputs : int
        Outputs and inputs of the switch's unit (`SWITCH_UNIT_PORTS`).
    link_turns, unit_turns : int
        Longest rotation of an output to a neighbour, and of one to the unit (`TURNS`).

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    tracks: int
    unit_outputs: int
    unit_inputs: int
    link_turns: int = 3
    unit_turns: int = 4

    def __post_init__(self) -> None:
        TRACKS.require("Switch tracks", self.tracks)
        SWITCH_UNIT_PORTS.require("Switch unit outputs", self.unit_outputs)
        SWITCH_UNIT_PORTS.require("Switch unit inputs", self.unit_inputs)
        TURNS.require("Turns of a link", self.link_turns)
        TURNS.require("Turns of a unit input", self.unit_turns)

    @functools.cached_property
    def links(self) -> tuple[Link, ...]:
        """Links of every direction, in program order."""
        return tuple(Link(side, track) for side in Direction for track in range(self.tracks))

    @functools.cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Ports at which payloads enter."""
        return (*self.links, *map(UnitPort, range(self.unit_outputs)))

    @functools.cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Ports at which payloads leave, in program order."""
        return (*self.links, *map(UnitPort, range(self.unit_inputs)))

    def sources(self, output: Port) -> tuple[Port, ...]:
        """Inputs that may feed an output, in the order of the ``source`` field."""
        return self.links if isinstance(output, UnitPort) else self._sources[output]

    @functools.cached_property
    def _sources(self) -> dict[Link, tuple[Port, ...]]:
        """Sources of each link to a neighbour."""
        units = tuple(map(UnitPort, range(self.unit_outputs)))
        found: dict[Link, tuple[Port, ...]] = {}
        for link in self.links:
            others = (side for side in Direction if side != link.direction)
            found[link] = (*(Link(side, link.track) for side in others), *units)
        return found

    def turns(self, output: Port) -> int:
        """Longest rotation of an output."""
        return self.unit_turns if isinstance(output, UnitPort) else self.link_turns


class PortNames(enum.IntEnum):
    """Base of the vector inputs, and of the vector outputs, of a kind of unit: name, position."""

    def __str__(self) -> str:
        # An engine is a letter and its number, as in the documents.
        return self.name if len(self.name) == 2 else self.name.lower().replace("_", " ")


def used(streams: Sequence[object]) -> tuple[int, ...]:
    """Ports of the streams that have a program, from their programs or None."""
    return tuple(port for port, program in enumerate(streams) if program is not None)


class UnitProgram(abc.ABC):
    """Run-time program of a unit, as nets and proofs see it: the ports that it uses."""

    @property
    @abc.abstractmethod
    def inputs(self) -> tuple[int, ...]:
        """Vector inputs that take packets."""

    @property
    @abc.abstractmethod
    def outputs(self) -> tuple[int, ...]:
        """Vector outputs that send packets."""

    @property
    def token_outputs(self) -> tuple[int, ...]:
        """Token outputs that send tokens."""
        return ()
