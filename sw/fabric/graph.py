"""Routing graph of a fabric: nodes are switch outputs, edges are legal successors."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import ChipConfig
from hw.arch.places import agcu_places, token_ports, vector_ports
from hw.arch.ports import Direction, Link, Port, UnitPort

__all__ = ["Fabric", "Node", "Place"]

#: Row and column of a switch.
Place = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Node:
    """Routing-graph node: a switch output, or a source (output of a unit, load stream of an AGCU).

    Parameters
    ----------
    place : (row, column)
        The switch; of a source, the switch it enters.
    port : Port
        The output; of a source, the input.
    offered : ((row, column), Port) or None
        Switch and input that the node drives; None if it drives a unit or an AGCU.
    turns : int
        Most turns of an output's rotation; 0 for a source.
    """

    place: Place
    port: Port
    offered: tuple[Place, Port] | None
    turns: int

    @property
    def arrived(self) -> bool:
        """Whether the node drives an input of a unit or of an AGCU."""
        return self.offered is None


class Fabric:
    """Routing graph of one network of a chip, vectors or tokens.

    Parameters
    ----------
    config : ChipConfig
    tokens : bool
        The token network instead of the vector network.

    Members
    -------
    nodes : list of Node
    followers : list of tuple of int
        Per node, the outputs that can take from it.
    outputs, sources : dict of ((row, column), Port) to int
        Numbers of the nodes.
    off_track : list of frozenset of int
        Per track, the outputs to links of other tracks.
    tracks : int
    streams : int
        Streams per AGCU into this network, and as many out of it.
    """

    def __init__(self, config: ChipConfig, *, tokens: bool) -> None:
        self.tracks = config.token_tracks if tokens else config.tracks
        self.streams = self.tracks if tokens else min(AGCU_STREAMS, self.tracks)
        self.nodes: list[Node] = []
        self.outputs: dict[tuple[Place, Port], int] = {}
        self.sources: dict[tuple[Place, Port], int] = {}
        self.agcus = [
            ((each.row, each.column(config)), Direction[each.side.upper()])
            for each in agcu_places(config)
        ]
        ports_of = token_ports if tokens else vector_ports
        switches = {
            (row, column): ports_of(config, config.unit_at(row, column))
            for row in range(config.rows)
            for column in range(config.columns)
        }
        consumers: defaultdict[tuple[Place, Port], list[int]] = defaultdict(list)
        for place, ports in switches.items():
            for index in range(ports.unit_outputs):
                self._source(place, UnitPort(index))
            for output in ports.outputs:
                number = self._output(place, output, ports.turns(output), switches.keys())
                if number is not None:
                    for source in ports.sources(output):
                        consumers[place, source].append(number)
        for place, side in self.agcus:
            for stream in range(self.streams):
                self._source(place, Link(side, stream))
        self.followers = [
            tuple(consumers[node.offered]) if node.offered else () for node in self.nodes
        ]
        self.off_track = [
            frozenset(
                number
                for number, node in enumerate(self.nodes)
                if isinstance(node.port, Link) and node.port.track != track
            )
            for track in range(self.tracks)
        ]

    def _source(self, place: Place, port: Port) -> None:
        self.sources[place, port] = len(self.nodes)
        self.nodes.append(Node(place, port, (place, port), 0))

    def _output(
        self, place: Place, port: Port, turns: int, switches: Collection[Place]
    ) -> int | None:
        offered = None
        if isinstance(port, Link):
            rows, columns = port.direction.step
            beyond = (place[0] + rows, place[1] + columns)
            if beyond in switches:
                offered = (beyond, Link(port.direction.opposite, port.track))
            elif (place, port.direction) not in self.agcus or port.track >= self.streams:
                return None
        self.outputs[place, port] = len(self.nodes)
        self.nodes.append(Node(place, port, offered, turns))
        return len(self.nodes) - 1
