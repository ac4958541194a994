"""Nets as the picture of a chip shows them: the links they use, their ends, their style."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from hw.arch.config import ChipConfig
from hw.arch.ports import Direction, Link
from hw.arch.switch import OutputProgram

__all__ = ["Hops", "NetEnds", "Style", "Way", "net_ends", "style_of", "ways_of"]

Place = tuple[int, int]
Hops = Iterable[tuple[Place, OutputProgram]]

#: Colours that people with any colour vision can tell apart, each with the colour of a text on it:
#: M. Okabe and K. Ito, "Color Universal Design" (2008), without yellow, invisible on white.
_COLOURS = (
    ("#0072b2", "white"),
    ("#e69f00", "black"),
    ("#000000", "white"),
    ("#cc79a7", "black"),
    ("#009e73", "white"),
    ("#d55e00", "white"),
    ("#56b4e9", "black"),
)
_DASHES = ("", "7 3", "2 2", "8 2 2 2")


@dataclasses.dataclass(frozen=True)
class Style:
    """How a net is drawn: by colour and dashes, and in grey by its number."""

    number: int
    colour: str
    ink: str
    dashes: str


def style_of(index: int) -> Style:
    """Style of the net at a position of the list; the first 28 differ in colour or dashes."""
    colour, ink = _COLOURS[index % len(_COLOURS)]
    return Style(index + 1, colour, ink, _DASHES[index // len(_COLOURS) % len(_DASHES)])


@dataclasses.dataclass(frozen=True, order=True)
class Way:
    """A link that a net uses.

    Members
    -------
    at : (row, column)
        Where it begins: a switch, or the AGCU in the column beside the mesh.
    direction : Direction
    track : int
    merged : bool
        Packets of several sources take turns on it.
    """

    at: Place
    direction: Direction
    track: int
    merged: bool = False


@dataclasses.dataclass(frozen=True)
class NetEnds:
    """Places of the units that a net comes from, and of those that it leads to."""

    sources: tuple[Place, ...]
    sinks: tuple[Place, ...]


def _beside(at: Place, direction: Direction) -> Place:
    down, along = direction.step
    return at[0] + down, at[1] + along


def _outside(config: ChipConfig, at: Place) -> bool:
    return not (0 <= at[0] < config.rows and 0 <= at[1] < config.columns)


def _entries(config: ChipConfig, hops: Hops) -> Iterator[tuple[Place, Link]]:
    """AGCUs that a net comes from, each with the input of the switch beside it."""
    for at, program in hops:
        for turn in program.rotation:
            if isinstance(turn.source, Link):
                beside = _beside(at, turn.source.direction)
                if _outside(config, beside):
                    yield beside, turn.source


def ways_of(config: ChipConfig, hops: Hops) -> list[Way]:
    """Links of a net: between switches, from switches to AGCUs, and from AGCUs to switches."""
    listed = list(hops)
    ways = {Way(at, link.direction.opposite, link.track) for at, link in _entries(config, listed)}
    for at, program in listed:
        if isinstance(program.output, Link):
            merged = len(program.rotation) > 1
            ways.add(Way(at, program.output.direction, program.output.track, merged))
    return sorted(ways)


def net_ends(config: ChipConfig, hops: Hops) -> NetEnds:
    """Where a net comes from, and where it leads to."""
    listed = list(hops)
    sources = {at for at, _ in _entries(config, listed)}
    sinks = set()
    for at, program in listed:
        if any(not isinstance(turn.source, Link) for turn in program.rotation):
            sources.add(at)
        if not isinstance(program.output, Link):
            sinks.add(at)
        elif _outside(config, beside := _beside(at, program.output.direction)):
            sinks.add(beside)
    return NetEnds(tuple(sorted(sources)), tuple(sorted(sinks)))
