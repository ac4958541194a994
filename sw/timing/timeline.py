"""Predicted timeline of a kernel: the moves of every actor of its network, with their cycles."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from sw.chip_program import ChipProgram
from sw.fabric.nets import find_nets
from sw.prove.stream_packets import StreamPackets
from sw.timing.flow import Run
from sw.timing.iterations import iterated
from sw.timing.prediction import END, LATENCY
from sw.timing.timed_network import TimedNetwork

__all__ = ["Move", "Timeline", "predict_timeline"]

_UNIT = re.compile(r"(PCU|PMU|AGCU) (?:\((\d+), (\d+)\)|(\d+)) ?(.*)")


@dataclasses.dataclass(frozen=True)
class Move:
    """Payloads that an actor moves in evenly spaced cycles.

    Members
    -------
    unit : str
        Name of the unit in a report.
    part : str
        Port or engine of the unit: ``W0``, ``R1``, ``load 0``, ``token 1``; empty for an array.
    run : Run
        First and last cycle, counted from the start of the kernel, and number of payloads.
    room : float
        Cycles just before the first in which it waited for room, and not for input.
    number : int
        Turn of the slot, or number of the box; -1 for others.
    """

    unit: str
    part: str
    run: Run
    room: float
    number: int

    @property
    def token(self) -> bool:
        """Whether the payloads are tokens."""
        return self.part.startswith("token")


@dataclasses.dataclass(frozen=True)
class Timeline:
    """Moves of a kernel, and its cycles.

    Members
    -------
    cycles : int
        From the start of the kernel to its end, all iterations.
    moves : list of Move
    """

    cycles: int
    moves: list[Move]


def predict_timeline(
    program: ChipProgram,
    *,
    repeat: int = 1,
    latency: int = LATENCY,
    arguments: Sequence[int] = (),
) -> Timeline:
    """Predict every move of a kernel by a timed run that leaves no repeats out.

    Parameters
    ----------
    program, repeat, latency, arguments
        As of `sw.timing.prediction.predict_cycles`.

    Raises
    ------
    StepLimitError
        If the run takes too many steps.
    """
    several = program if repeat == 1 else iterated(program, repeat)
    moves: list[Move] = []

    def watch(who: str, run: Run, room: float, number: int) -> None:
        found = _UNIT.match(who)
        if found is None:
            return
        kind, row, column, index, part = found.groups()
        at = index if row is None else f"{row}_{column}"
        moves.append(Move(f"{kind.lower()}_{at}", part, run, max(0.0, room), number))

    chosen = program if several is None else several
    nets = find_nets(chosen)
    network = TimedNetwork(
        chosen,
        nets,
        StreamPackets(chosen, nets),
        latency=latency,
        arguments=tuple(arguments),
        watcher=watch,
    )
    network.run(whole=True)
    once = round(network.end) + END
    if several is not None:
        return Timeline(once, moves)
    # Iterations that are taken not to overlap.
    every = [
        dataclasses.replace(move, run=move.run.later(number * once))
        for number in range(repeat)
        for move in moves
    ]
    return Timeline(once * repeat, every)
