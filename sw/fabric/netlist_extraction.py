"""Netlist extraction: the packet order at every input of a configured chip, traced back by switch.

Independent of placer and router: it applies only the rules of `docs/switch.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hw.arch.places import agcu_places
from hw.arch.ports import Direction, Link, Port, UnitPort
from hw.arch.switch import SwitchProgram
from sw.chip_program import ChipProgram
from sw.netlist import End, Netlist

__all__ = ["WalkError", "walk"]

_Spot = tuple[tuple[int, int], Port]


class WalkError(ValueError):
    """Switch programs that do not implement a netlist."""


def walk(netlist: Netlist, tiles: Mapping[str, tuple[int, int]], program: ChipProgram) -> None:
    """Check that every sink receives its net's rotation, and that nothing else is enabled.

    Parameters
    ----------
    netlist : Netlist
    tiles : mapping of str to (row, column)
        Tile of each PCU and PMU.
    program : ChipProgram

    Raises
    ------
    WalkError
        If a sink receives other packets, packets run in a cycle or reach an input that does not
        take them, or an input outside every net is driven.
    """
    for tokens in (False, True):
        _Walk(netlist, tiles, program, tokens=tokens).check()


class _Walk:
    def __init__(
        self,
        netlist: Netlist,
        tiles: Mapping[str, tuple[int, int]],
        program: ChipProgram,
        *,
        tokens: bool,
    ) -> None:
        self._switches: dict[tuple[int, int], SwitchProgram] = {
            place: tile.tokens if tokens else tile.vectors for place, tile in program.tiles.items()
        }
        portals = agcu_places(program.config)

        def spot(end: End) -> _Spot:
            if end.unit in tiles:
                return tiles[end.unit], UnitPort(end.port)
            portal = portals[netlist.fixed[end.unit]]
            side = Direction[portal.side.upper()]
            return (portal.row, portal.column(program.config)), Link(side, end.port)

        self._nets = [net for net in netlist.nets if net.tokens == tokens]
        self._ends = {spot(end): end for net in self._nets for end, _ in net.sources}
        self._sinks = {spot(end): net for net in self._nets for end in net.sinks}

    def check(self) -> None:
        """Check this network."""
        on = {
            (place, output.output)
            for place, switch in self._switches.items()
            for output in switch.outputs
        }
        for at in sorted(self._sinks.keys() - on, key=str):
            raise WalkError(f"Input at {_say(at)} must be fed for `{self._sinks[at].name}`")
        for at in sorted(on - self._sinks.keys(), key=str):
            beyond = self._beyond(at)
            if beyond is None:
                raise WalkError(f"Output {_say(at)} must lead to a sink of a net or to a switch")
            if beyond[0] not in self._switches or not self._switches[beyond[0]].branches(beyond[1]):
                raise WalkError(f"Packets at {_say(beyond)} must have a taker")
        for at, net in self._sinks.items():
            rotation = [end for end, packets in net.sources for _ in range(packets)]
            seen = self._output(at, 3 * len(rotation), ())
            if seen != 3 * rotation:
                raise WalkError(
                    f"Input at {_say(at)} must see {_list(rotation)} of `{net.name}`, "
                    f"not {_list(seen)}"
                )

    def _output(self, at: _Spot, count: int, above: tuple[_Spot, ...]) -> list[End]:
        """Source pins of the first `count` packets that leave an output."""
        if at in above:
            raise WalkError(f"Packets must not run in a circle, but do at {_say(at)}")
        place = at[0]
        turns = self._switches[place].rotation(at[1]) if place in self._switches else ()
        if not turns:
            raise WalkError(f"Output {_say(at)} must be on, for its neighbour takes from it")
        order: list[Port] = []
        while len(order) < count:
            order += [turn.source for turn in turns for _ in range(turn.packets)]
        order = order[:count]
        streams = {
            port: iter(self._input((place, port), needed, (*above, at)))
            for port, needed in Counter(order).items()
        }
        return [next(streams[port]) for port in order]

    def _input(self, at: _Spot, count: int, above: tuple[_Spot, ...]) -> list[End]:
        """Source pins of the first `count` packets at an input of a switch."""
        if at in self._ends:
            return [self._ends[at]] * count
        before = self._beyond(at)
        if before is None:
            raise WalkError(f"Packets at {_say(at)} must come from a source of a net")
        return self._output(before, count, above)

    def _beyond(self, at: _Spot) -> _Spot | None:
        """The opposite end of a link."""
        (row, column), port = at
        if isinstance(port, UnitPort):
            return None
        down, right = port.direction.step
        return (row + down, column + right), Link(port.direction.opposite, port.track)


def _say(at: _Spot) -> str:
    return f"{at[1]} of switch {at[0]}"


def _list(ends: list[End]) -> str:
    return " ".join(f"{end.unit}.{end.port}" for end in ends[:24])
