"""Nets as the floorplan draws them: links, pins and line styles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from hw.arch.config import ChipConfig
from hw.arch.ports import Direction, Link
from hw.arch.switch import OutputProgram

__all__ = ["Hops", "NetEnds", "Style", "Way", "net_ends", "style_of", "ways_of"]

Place = tuple[int, int]
Hops = Iterable[tuple[Place, OutputProgram]]

#: Colours that are distinct for any colour vision, each with the colour of a text on it:
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
    """Line style of a net: colour and dashes, or grey with its number."""

    number: int
    colour: str
    ink: str
    dashes: str


def style_of(index: int) -> Style:
    """Style of the net at an index of the list; the first 28 differ in colour or dashes."""
    colour, ink = _COLOURS[index % len(_COLOURS)]
    return Style(index + 1, colour, ink, _DASHES[index // len(_COLOURS) % len(_DASHES)])


@dataclasses.dataclass(frozen=True, order=True)
class Way:
    """Link that a net uses.

    Members
    -------
    at : (row, column)
        Start of the link: a switch, or the AGCU in the column beside the mesh.
    direction : Direction
    track : int
    merged : bool
        Packets of several sources are merged on it.
    """

    at: Place
    direction: Direction
    track: int
    merged: bool = False


@dataclasses.dataclass(frozen=True)
class NetEnds:
    """Pins of a net: positions of its source and sink units."""

    sources: tuple[Place, ...]
    sinks: tuple[Place, ...]


def _beside(at: Place, direction: Direction) -> Place:
    down, along = direction.step
    return at[0] + down, at[1] + along


def _outside(config: ChipConfig, at: Place) -> bool:
    return not (0 <= at[0] < config.rows and 0 <= at[1] < config.columns)


def _entries(config: ChipConfig, hops: Hops) -> Iterator[tuple[Place, Link]]:
    """Source AGCUs of a net, each with the input of the switch beside it."""
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
    """Source and sink positions of a net."""
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
