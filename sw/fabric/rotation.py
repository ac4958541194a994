"""The rule of merging: which rotations a tree of merges keeps.

A net's sinks must see ``p0`` packets of the first source, ``p1`` of the second, and so on, for
ever. A merge takes whole runs from its inputs, beginning with turn 0, and so does every merge
before it. A tree of merges therefore keeps the order if, at each merge,

- every input carries a run of sources that are neighbours in the rotation, first to last,
- the turns stand in the order of those runs, and
- a turn takes as many packets as one round of its input has: the sum of its sources' packets.

A run does not wrap around: the rotation (a, b, c) cannot be made of (c, a) and b, because its
first packet is a's and the merge of c and a would begin with c's. A turn takes at most 15 packets,
so a run that is merged once more has at most 15 in a round.
"""

from __future__ import annotations

from collections.abc import Sequence

from hw.arch.switch import MAX_PACKETS

__all__ = ["partitions"]

#: Sources of a group, by their positions in the rotation.
Group = tuple[int, ...]


def partitions(packets: Sequence[int], turns: int, *, one_sink: bool) -> list[tuple[Group, ...]]:
    """Ways to cut a rotation into runs that travel apart and meet at the sinks, best first.

    One run needs one tree; several cost links, but a sink may take them from different tracks.
    Empty if no tree of merges keeps the rotation.

    Parameters
    ----------
    packets : sequence of int
        Packets of each turn of the rotation.
    turns : int
        Longest rotation of the sinks' inputs.
    one_sink : bool
        The net has one sink; its only tree ends there, merge included.
    """
    whole = tuple(range(len(packets)))
    runs = _runs(packets)
    if one_sink:
        return [(whole,)] if len(runs) <= turns else []
    found: list[tuple[Group, ...]] = []
    # The last merge before a fork is at a link, whose rotation is shorter than a unit's.
    if len(runs) <= _LINK_TURNS:
        found.append((whole,))
    for cut in (runs, tuple((each,) for each in whole)):
        if 1 < len(cut) <= turns and cut not in found:
            found.append(cut)
    return found


#: Longest rotation of a link.
_LINK_TURNS = 3


def _runs(packets: Sequence[int]) -> tuple[Group, ...]:
    """Fewest runs of at most 15 packets a round."""
    runs: list[list[int]] = []
    total = 0
    for index, count in enumerate(packets):
        if not runs or total + count > MAX_PACKETS:
            runs.append([])
            total = 0
        runs[-1].append(index)
        total += count
    return tuple(map(tuple, runs))
