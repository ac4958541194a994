"""route: routing of nets over exclusive links by negotiated congestion (PathFinder).

In each iteration every net is rerouted by link costs. The cost of a link shared by two nets rises
with every iteration, until no link is shared.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator, Mapping, Sequence

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.arch.ports import Link
from hw.arch.switch import OutputProgram, Turn
from sw.fabric.fit_error import FitError
from sw.fabric.graph import Fabric, Place
from sw.fabric.netlist_check import check_netlist, net_noun, pin_names, pin_port
from sw.fabric.place import Placement, place
from sw.fabric.rotation import Group, partitions
from sw.fabric.tree import Feeds, NoPathError, grow
from sw.netlist import Net, Netlist

__all__ = [
    "Hop",
    "RouteError",
    "Routes",
    "place_and_route",
    "placement_seeds",
    "route",
    "unroutable",
]

#: Rounds of negotiation before a placement counts as one that does not route.
_ROUNDS = 150
#: After these rounds more links in common than this are taken as hopeless (successes had 4).
_HOPELESS = (40, 10)
#: Placements that are tried.
_ATTEMPTS = 5
_FIRST_PRICE = 0.5
_PRICE_GROWTH = 1.1
_HISTORY = 0.4


class RouteError(FitError):
    """Nets that cannot be routed over the links of a chip."""

    kind = "does-not-route"


@dataclasses.dataclass(frozen=True)
class Hop:
    """A switch output that a net uses.

    Parameters
    ----------
    place : (row, column)
        The switch.
    program : OutputProgram
        The output and its rotation.
    """

    place: Place
    program: OutputProgram


@dataclasses.dataclass(frozen=True)
class Routes:
    """Switch outputs used by each net.

    Parameters
    ----------
    vectors, tokens : mapping of str to tuple of Hop
        Hops by the name of the net.
    """

    vectors: Mapping[str, tuple[Hop, ...]]
    tokens: Mapping[str, tuple[Hop, ...]]

    @property
    def wirelength(self) -> int:
        """Number of links in use, vectors and tokens."""
        return sum(
            isinstance(hop.program.output, Link)
            for hops in (*self.vectors.values(), *self.tokens.values())
            for hop in hops
        )


@dataclasses.dataclass
class _Task:
    """A net by node numbers of the routing graph."""

    net: Net
    sources: list[tuple[int, int]]
    sinks: list[int]
    groups: list[tuple[Group, ...]]
    closed: frozenset[int]


@functools.lru_cache(maxsize=8)
def _fabric(config: ChipConfig, tokens: bool) -> Fabric:
    """Routing graph, which no route changes, of a network."""
    return Fabric(config, tokens=tokens)


def route(
    netlist: Netlist,
    placement: Placement,
    config: ChipConfig,
    *,
    seed: int,
    via: Mapping[str, Sequence[Place]] | None = None,
) -> Routes:
    """Route every net of a placed netlist.

    Parameters
    ----------
    netlist : Netlist
    placement : Placement
    config : ChipConfig
    seed : int
        Equal seeds give equal routes.
    via : mapping of str to sequence of (row, column), optional
        Switches between the source and the sink of some nets of one source and one sink, in order.

    Raises
    ------
    RouteError
        If switches given are no path, a net has no path, or some nets still need the same links.
    """
    check_netlist(netlist, config)
    found = []
    for tokens in (False, True):
        fabric = _fabric(config, tokens)
        tasks = [
            _task(netlist, placement, config, fabric, net, (via or {}).get(net.name))
            for net in netlist.nets
            if net.tokens == tokens
        ]
        feeds = _Negotiation(fabric, tasks, random.Random(seed)).run(config)
        found.append(
            {task.net.name: _hops(fabric, each) for task, each in zip(tasks, feeds, strict=True)}
        )
    return Routes(*found)


def place_and_route(
    netlist: Netlist,
    config: ChipConfig,
    *,
    seed: int,
    pins: Mapping[str, Place] | None = None,
) -> tuple[Placement, Routes]:
    """Find a placement that can be routed, among a few drawn from the seed.

    Raises
    ------
    FitError
        If the chip has too few units, or no placement can be routed; the message names the nets.
    """
    failures = []
    for attempt in placement_seeds(seed):
        placement = place(netlist, config, seed=attempt, pins=pins)
        try:
            return placement, route(netlist, placement, config, seed=seed)
        except RouteError as error:
            failures.append(error)
    raise unroutable(failures)


def placement_seeds(seed: int) -> Iterator[int]:
    """Seeds of the placements that are tried for a user's seed."""
    # A stride between attempts keeps the placements of two user seeds apart.
    return (seed + attempt * 1_000_003 for attempt in range(_ATTEMPTS))


def unroutable(failures: Sequence[BadInputError]) -> RouteError:
    """Error of a netlist of which no placement could be routed."""
    last = failures[-1]
    return RouteError(
        f"{last.message}, in each of {len(failures)} placements", value=last.value, rule=last.rule
    )


def _task(
    netlist: Netlist,
    placement: Placement,
    config: ChipConfig,
    fabric: Fabric,
    net: Net,
    via: Sequence[Place] | None,
) -> _Task:
    sources = [
        (fabric.sources[pin_port(netlist, config, placement.tiles, pin)], packets)
        for pin, packets in net.sources
    ]
    sinks = [fabric.outputs[pin_port(netlist, config, placement.tiles, pin)] for pin in net.sinks]
    turns = min(fabric.nodes[sink].turns for sink in sinks)
    packets = [count for _, count in sources]
    groups = partitions(packets, turns, one_sink=len(sinks) == 1)
    if not groups:
        raise RouteError(
            f"{net_noun(net)} must be a rotation of at most {turns} runs of at most 15 packets, "
            f"not of {', '.join(map(str, packets))} packets",
            value=packets,
        )
    closed = frozenset[int]() if via is None else _beside(fabric, net, sources, sinks, via)
    return _Task(net, sources, sinks, groups, closed)


def _beside(
    fabric: Fabric,
    net: Net,
    sources: Sequence[tuple[int, int]],
    sinks: Sequence[int],
    via: Sequence[Place],
) -> frozenset[int]:
    """Links between switches that are not on the path given for a net."""
    if len(sources) > 1 or len(sinks) > 1:
        raise RouteError(
            f"{net_noun(net)} must have one source and one sink for a path by `via`, not "
            f"{len(sources)} and {len(sinks)}",
            value=net.name,
        )
    first, last = fabric.nodes[sources[0][0]].place, fabric.nodes[sinks[0]].place
    path = [first, *via] if not via and first == last else [first, *via, last]
    for number, (here, there) in enumerate(zip(path, path[1:])):
        if abs(here[0] - there[0]) + abs(here[1] - there[1]) != 1 or there in path[: number + 1]:
            raise RouteError(
                f"Path of {net_noun(net).lower()} must go from switch to neighbour, none twice, "
                f"not from {here} to {there}: {' → '.join(map(str, path))}",
                value=path,
                rule="`via` names each switch between that of the source and that of the sink",
            )
    steps = set(zip(path, path[1:]))
    return frozenset(
        number
        for number, node in enumerate(fabric.nodes)
        if node.offered is not None and node.turns and (node.place, node.offered[0]) not in steps
    )


def _hops(fabric: Fabric, feeds: Feeds) -> tuple[Hop, ...]:
    hops = []
    for output, feeders in sorted(feeds.items()):
        node = fabric.nodes[output]
        turns = []
        for feeder, packets in feeders:
            offered = fabric.nodes[feeder].offered
            assert offered is not None and offered[0] == node.place
            turns.append(Turn(offered[1], packets))
        hops.append(Hop(node.place, OutputProgram(node.port, tuple(turns))))
    return tuple(hops)


class _Negotiation:
    """Rip-up and reroute of the nets that share a link."""

    def __init__(self, fabric: Fabric, tasks: Sequence[_Task], rng: random.Random) -> None:
        self._fabric = fabric
        self._tasks = tasks
        self._rng = rng
        count = len(fabric.nodes)
        self._users = [0] * count
        # A tiny random part breaks ties, or equal paths would be chosen again and again.
        self._own = [0.0 if node.arrived else 1.0 + 0.01 * rng.random() for node in fabric.nodes]
        self._history = [0.0] * count
        #: Cost of each output that no net uses, and the outputs that nets use.
        self._unused = self._own.copy()
        self._used: set[int] = set()
        self._feeds: list[Feeds] = [{} for _ in tasks]

    def run(self, config: ChipConfig) -> list[Feeds]:
        """Route all tasks; returns the tree of each."""
        price = _FIRST_PRICE
        todo = list(range(len(self._tasks)))
        for past in range(_ROUNDS):
            self._rng.shuffle(todo)
            for index in todo:
                self._route(index, price)
            shared = [output for output, users in enumerate(self._users) if users > 1]
            for output in shared:
                self._history[output] += _HISTORY * (self._users[output] - 1)
                self._unused[output] = self._own[output] * (1.0 + self._history[output])
            todo = [
                index
                for index, feeds in enumerate(self._feeds)
                if any(output in feeds for output in shared)
            ]
            if not todo:
                return self._feeds
            if past >= _HOPELESS[0] and len(shared) > _HOPELESS[1]:
                break
            price *= _PRICE_GROWTH
        names = ", ".join(f"`{self._tasks[index].net.name}`" for index in sorted(todo))
        noun = "token nets" if self._tasks[0].net.tokens else "nets"
        kind = "token tracks" if self._tasks[0].net.tokens else "tracks"
        raise RouteError(
            f"Routes must fit the {self._fabric.tracks} {kind} of a fabric of {config.rows} × "
            f"{config.columns}, not need more: {noun} {names} are left with links in common",
            value=[self._tasks[index].net.name for index in sorted(todo)],
            rule=f"{kind} = {self._fabric.tracks}",
        )

    def _route(self, index: int, price: float) -> None:
        users = self._users
        for number in self._feeds[index]:
            users[number] -= 1
        self._used.difference_update([each for each in self._feeds[index] if not users[each]])
        cost = self._unused.copy()
        for number in self._used:
            cost[number] *= 1.0 + price * users[number]
        feeds = self._grow(self._tasks[index], cost)
        for number in feeds:
            users[number] += 1
        self._used.update(feeds)
        self._feeds[index] = feeds

    def _grow(self, task: _Task, cost: Sequence[float]) -> Feeds:
        for groups in task.groups:
            try:
                return grow(self._fabric, task.sources, task.sinks, groups, cost, task.closed)
            except NoPathError:
                continue
        net = task.net
        raise RouteError(
            f"{net_noun(net)} must have a tree from {pin_names(pin for pin, _ in net.sources)} to "
            f"{pin_names(net.sinks)}, but in this placement there is none",
            value=net.name,
        )
