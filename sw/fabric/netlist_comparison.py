"""Comparison of the nets extracted from a chip's program with the netlist that was placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from hw.arch.unit_kind import AGCU
from sw.chip_program import ChipProgram
from sw.fabric.graph import Place
from sw.fabric.nets import DeadEnd, Input, MergeInput, Nets, Output, find_nets
from sw.netlist import Netlist, Pin

__all__ = ["NetlistMismatchError", "require_netlist"]

_Pin = TypeVar("_Pin", Input, Output)


class NetlistMismatchError(ValueError):
    """Switch programs that do not implement a netlist."""


def require_netlist(netlist: Netlist, tiles: Mapping[str, Place], program: ChipProgram) -> None:
    """Check that every sink receives its net's rotation, and that nothing else is enabled.

    Parameters
    ----------
    netlist : Netlist
    tiles : mapping of str to (row, column)
        Tile of each PCU and PMU.
    program : ChipProgram

    Raises
    ------
    NetlistMismatchError
        If a sink receives other packets, packets run in a cycle or reach an input that does not
        take them, or an output of a switch is on without need.
    """

    def pin(kind: type[_Pin], end: Pin, tokens: bool) -> _Pin:
        if end.unit in tiles:
            return kind(program.config.unit_at(*tiles[end.unit]), tiles[end.unit], end.port, tokens)
        return kind(AGCU, (netlist.fixed[end.unit],), end.port, tokens)

    rotations = {
        pin(Input, sink, net.tokens): [
            pin(Output, end, net.tokens) for end, packets in net.sources for _ in range(packets)
        ]
        for net in netlist.nets
        for sink in net.sinks
    }
    nets = find_nets(program, [source for sources in rotations.values() for source in sources])
    for root, net in nets.nets.items():
        for leaf, _ in net.leaves:
            if isinstance(leaf, DeadEnd):
                raise NetlistMismatchError(f"Packets of {root} must have a taker, not {leaf}")
            if isinstance(leaf, Input) and leaf not in rotations:
                raise NetlistMismatchError(f"Packets of {root} must lead to a sink, not to {leaf}")
    for sink, rotation in rotations.items():
        seen = _arriving(nets, sink, 3 * len(rotation), ())
        if seen != 3 * rotation:
            raise NetlistMismatchError(
                f"{sink} must see packets of {_list(rotation)}, not of {_list(seen)}"
            )
    for at, tile in program.tiles.items():
        for switch in (tile.vectors, tile.tokens):
            for each in switch.outputs:
                if (at, each.output, switch is tile.tokens) not in nets.driven:
                    raise NetlistMismatchError(
                        f"Output {each.output} of switch {at} must be off, for no net drives it"
                    )


def _arriving(
    nets: Nets, leaf: Input | MergeInput, count: int, above: tuple[Input | MergeInput, ...]
) -> list[Output]:
    """Source pins of the first `count` packets that arrive at an input."""
    root = nets.feeds.get(leaf)
    if root is None:
        raise NetlistMismatchError(f"{leaf} must be fed by a source of a net")
    if leaf in above:
        raise NetlistMismatchError(f"Packets must not run in a circle, but do at {leaf}")
    if isinstance(root, Output):
        return [root] * count
    packets = nets.packets[root]
    order = [turn for turn, number in enumerate(packets) for _ in range(number)]
    order = (order * (count // len(order) + 1))[:count]
    streams = {
        turn: iter(_arriving(nets, MergeInput(root, turn), needed, (*above, leaf)))
        for turn, needed in Counter(order).items()
    }
    return [next(streams[turn]) for turn in order]


def _list(pins: list[Output]) -> str:
    return ", ".join(map(str, pins[:24]))
