"""Routing tree of one net: merges from the sources to a first sink, then forks to the others."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterable, Sequence, Set

from hw.arch.ports import Link
from hw.arch.switch import MAX_PACKETS
from sw.fabric.graph import Fabric

__all__ = ["Feeds", "NoPathError", "grow"]

#: For each output in use, its sources in the order of turns, each with packets per turn.
Feeds = dict[int, list[tuple[int, int]]]


class NoPathError(Exception):
    """A net without a routing tree over the outputs that may be used."""


def grow(
    fabric: Fabric,
    sources: Sequence[tuple[int, int]],
    sinks: Sequence[int],
    groups: Sequence[Sequence[int]],
    cost: Sequence[float],
    closed: Collection[int] = (),
) -> Feeds:
    """Route a net: one tree per group of sources to all sinks, whose outputs merge the groups.

    Parameters
    ----------
    fabric : Fabric
    sources : sequence of (int, int)
        Nodes in the order of the rotation, each with its packets per turn.
    sinks : sequence of int
        Outputs.
    groups : sequence of sequence of int
        Positions in ``sources``, see `sw.fabric.rotation`.
    cost : sequence of float
        Cost of each output.
    closed : collection of int
        Outputs that the net must not use.

    Raises
    ------
    NoPathError
        If there is no tree.
    """

    def bound(group: Sequence[int]) -> bool:
        return any(isinstance(fabric.nodes[sources[each][0]].port, Link) for each in group)

    feeds: Feeds = {}
    for their in _classes(fabric, sources, sinks):
        taken = {*feeds, *closed}
        trees: dict[int, Feeds] = {}
        # AGCU streams have a fixed track, so they are routed first.
        for index in sorted(range(len(groups)), key=lambda each: not bound(groups[each])):
            tree = _Tree(fabric, cost, taken)
            chosen = [sources[each] for each in groups[index]]
            trees[index] = tree.grow(chosen, their, apart=len(groups) > 1)
            taken |= trees[index].keys() - set(their)
        for index, group in enumerate(groups):
            packets = sum(sources[each][1] for each in group)
            for output, turns in trees[index].items():
                if len(groups) > 1 and output in their:
                    feeds.setdefault(output, []).append((turns[0][0], packets))
                else:
                    feeds[output] = turns
    return feeds


def _classes(
    fabric: Fabric, sources: Sequence[tuple[int, int]], sinks: Sequence[int]
) -> list[list[int]]:
    """Group the sinks by the track their AGCUs prescribe; merged packets cannot change tracks."""
    classes: dict[int, list[int]] = {}
    units = []
    for sink in sinks:
        port = fabric.nodes[sink].port
        if isinstance(port, Link) and len(sources) > 1:
            classes.setdefault(port.track, []).append(sink)
        else:
            units.append(sink)
    first, *others = [*classes.values()] or [[]]
    return [units + first, *others]


class _Tree:
    """Routing tree of one run of the rotation, under construction."""

    def __init__(self, fabric: Fabric, cost: Sequence[float], taken: Iterable[int]) -> None:
        self._fabric = fabric
        self._cost = cost
        self._taken = set(taken)
        self._from: dict[int, list[int]] = {}
        self._packets: dict[int, int] = {}

    def grow(
        self, sources: Sequence[tuple[int, int]], sinks: Sequence[int], *, apart: bool
    ) -> Feeds:
        """Cheapest tree to all sinks over the choices of track.

        ``apart``: the sinks merge this tree with others, so it has no merge at a sink.
        """
        self._packets = dict(sources)
        free, best = self._taken, math.inf
        found: Feeds = {}
        for others in self._tracks(sources, sinks):
            self._taken = free | others
            if not self._try(sources, sinks, apart=apart):
                continue
            price = sum(self._cost[output] for output in self._from)
            if price < best:
                best, found = price, self._turns()
        if not found:
            raise NoPathError
        return found

    def _tracks(
        self, sources: Sequence[tuple[int, int]], sinks: Sequence[int]
    ) -> Sequence[Set[int]]:
        """Links to exclude, one set per choice of track.

        Merged packets cannot change tracks, so the track must be chosen before the first path; an
        AGCU among the sinks prescribes it.
        """
        nodes = self._fabric.nodes
        ports = [nodes[sink].port for sink in sinks]
        needed = {port.track for port in ports if isinstance(port, Link)}
        if len(sources) == 1 or (len(sinks) == 1 and not needed):
            return [frozenset()]
        return [self._fabric.off_track[track] for track in needed or range(self._fabric.tracks)]

    def _try(
        self, sources: Sequence[tuple[int, int]], sinks: Sequence[int], *, apart: bool
    ) -> bool:
        """Build the tree, merging on the path to each sink in turn, the nearest first."""
        roots = sorted(sinks, key=lambda sink: (self._distance(sources, sink), sink))
        # A merge at the first sink itself rarely extends to other sinks: tried last.
        merging = [True] if len(sinks) == 1 else [False, True]
        for at_root, root in itertools.product([False] if apart else merging, roots):
            self._from = {}
            try:
                spine = self._merge(sources, root, at_root=at_root)
                self._fork(spine, set(sinks) - {root}, apart=apart)
            except NoPathError:
                continue
            return True
        return False

    def _turns(self) -> Feeds:
        return {
            output: [(node, self._round(node) if len(nodes) > 1 else 1) for node in nodes]
            for output, nodes in self._from.items()
        }

    def _merge(self, sources: Sequence[tuple[int, int]], root: int, *, at_root: bool) -> list[int]:
        """Merge the sources on the path to a first sink; returns the path of the last source."""
        spine: list[int] = []
        for position, (source, packets) in enumerate(sources):
            goals = self._joints(spine, packets, at_root) if position else {root}
            path = self._search(self._steps([source]), goals)
            self._extend(path)
            joint = path[-1]
            rest = spine[spine.index(joint) + 1 :] if position else []
            spine = path + rest
        return spine

    def _distance(self, sources: Sequence[tuple[int, int]], sink: int) -> int:
        row, column = self._fabric.nodes[sink].place
        places = (self._fabric.nodes[source].place for source, _ in sources)
        return sum(abs(row - there[0]) + abs(column - there[1]) for there in places)

    def _round(self, node: int) -> int:
        """Packets per round of the sources that a node carries."""
        if node in self._packets:
            return self._packets[node]
        return sum(map(self._round, self._from[node]))

    def _joints(self, spine: Sequence[int], packets: int, at_root: bool) -> set[int]:
        """Outputs on the last source's path to the root at which the next source may join."""
        joints = set()
        # From the root upwards: each merge on the path must have room in its last turn.
        for before, output in zip(reversed(spine[:-1]), reversed(spine[1:])):
            feeders = self._from[output]
            node = self._fabric.nodes[output]
            room = len(feeders) < node.turns and (at_root or not node.arrived)
            if room and (len(feeders) > 1 or self._round(before) <= MAX_PACKETS):
                joints.add(output)
            if len(feeders) > 1 and self._round(before) + packets > MAX_PACKETS:
                break
        return joints

    def _steps(self, nodes: Iterable[int]) -> Iterable[tuple[int, int]]:
        return ((node, output) for node in nodes for output in self._fabric.followers[node])

    def _search(self, frontier: Iterable[tuple[int, int]], goals: Collection[int]) -> list[int]:
        """Cheapest path over free outputs from the frontier to a goal (Dijkstra)."""
        blocked, cost, followers = self._from, self._cost, self._fabric.followers
        came: dict[int, int] = {}
        heap: list[tuple[float, int, int]] = []
        for node, output in frontier:
            if output in goals or (output not in blocked and output not in self._taken):
                heap.append((cost[output], output, node))
        heapq.heapify(heap)
        while heap:
            so_far, output, node = heapq.heappop(heap)
            if output in came:
                continue
            came[output] = node
            if output in goals:
                path = [output]
                while path[-1] in came:
                    path.append(came[path[-1]])
                return path[::-1]
            for follower in followers[output]:
                if follower in came:
                    continue
                if follower in goals or (follower not in blocked and follower not in self._taken):
                    heapq.heappush(heap, (so_far + cost[follower], follower, output))
        raise NoPathError

    def _extend(self, path: Sequence[int]) -> None:
        for node, output in zip(path, path[1:]):
            self._from.setdefault(output, []).append(node)

    def _fork(self, spine: Sequence[int], sinks: set[int], *, apart: bool) -> None:
        """Fork to the other sinks from the outputs that carry all sources."""
        followers = self._fabric.followers
        feeders: list[int] = []
        whole = list(spine)
        for index, output in enumerate(spine):
            if len(self._from.get(output, ())) > 1:
                feeders, whole = self._from[output], list(spine[index:])
        # Another output of the same switch may repeat the last merge.
        twins = [
            output
            for output in (followers[feeders[0]] if feeders else ())
            if all(output in followers[node] for node in feeders)
            and self._fabric.nodes[output].turns >= len(feeders)
            and not (apart and self._fabric.nodes[output].arrived)
        ]
        while sinks:
            frontier = [*self._steps(whole), *((-1, output) for output in twins)]
            path = self._search(frontier, sinks)
            if path[0] < 0:
                self._from[path[1]] = list(feeders)
                self._extend(path[1:])
            else:
                self._extend(path)
            whole.extend(path[1:])
            sinks = sinks - {path[-1]}
