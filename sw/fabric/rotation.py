"""Which cyclic packet orders (rotations) a tree of merges preserves.

A net's sinks must receive ``p0`` packets of the first source, ``p1`` of the second, and so on,
cyclically. Every merge serves its inputs in a fixed cyclic order, beginning with turn 0, and takes
the packets of a turn without interruption. A tree of merges preserves the order if, at each merge,

- every input carries a run: sources that are adjacent in the rotation, first to last,
- the turns are in the order of those runs, and
- a turn takes one whole round of its input: the sum of its sources' packets.

A run does not wrap around: the rotation (a, b, c) cannot be built from (c, a) and b, because its
first packet is a's and the merge of c and a would begin with c's. A turn takes at most 15 packets,
so a run that is merged again has at most 15 packets per round.
"""

from __future__ import annotations

from collections.abc import Sequence

from hw.arch.switch import MAX_PACKETS

__all__ = ["partitions"]

#: Positions of a group's sources in the rotation.
Group = tuple[int, ...]


def partitions(packets: Sequence[int], turns: int, *, one_sink: bool) -> list[tuple[Group, ...]]:
    """Partitions of a rotation into runs, routed separately and merged at the sinks; best first.

    One run needs one tree; several need more links, but a sink may take them from different
    tracks. Empty if no tree of merges preserves the rotation.

    Parameters
    ----------
    packets : sequence of int
        Packets of each turn.
    turns : int
        Most turns of a sink's merge.
    one_sink : bool
        Whether the net has one sink, where its last merge may lie.
    """
    whole = tuple(range(len(packets)))
    runs = _runs(packets)
    if one_sink:
        return [(whole,)] if len(runs) <= turns else []
    found: list[tuple[Group, ...]] = []
    # The last merge before a fork drives a link, which has fewer turns than a unit's input.
    if len(runs) <= _LINK_TURNS:
        found.append((whole,))
    for cut in (runs, tuple((each,) for each in whole)):
        if 1 < len(cut) <= turns and cut not in found:
            found.append(cut)
    return found


#: Most turns of a link's rotation.
_LINK_TURNS = 3


def _runs(packets: Sequence[int]) -> tuple[Group, ...]:
    """Partition into the fewest runs of at most 15 packets per round."""
    runs: list[list[int]] = []
    total = 0
    for index, count in enumerate(packets):
        if not runs or total + count > MAX_PACKETS:
            runs.append([])
            total = 0
        runs[-1].append(index)
        total += count
    return tuple(map(tuple, runs))
