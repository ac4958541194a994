"""Liveness proof of a decoded image: a token-level run with capacities at most the RTL's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from hw.arch.errors import BadInputError
from hw.arch.limits import MAX_CREDITS
from sw.chip_program import ChipProgram
from sw.fabric.nets import DeadEnd, Input, Nets, enabled_inputs, find_nets
from sw.prove.machine import Actor
from sw.prove.network import Network
from sw.prove.pmu_actors import Engine, WriteEngine
from sw.prove.stream_packets import CyclicStreamError, StreamPackets
from sw.prove.unrolled_loops import MOST_STEPS, StepLimitError

__all__ = ["Liveness", "LivenessError", "prove", "require_live"]


class LivenessError(BadInputError):
    """A program that deadlocks or leaves payloads behind."""

    kind = "not-live"


@dataclasses.dataclass(frozen=True)
class Liveness:
    """Result of the token-level run of an image.

    Parameters
    ----------
    live : bool
        Whether every actor ends and nothing is left over.
    steps, moved : int
        Steps of the run, and payloads moved, skipped periods included.
    waits : tuple of str
        The deadlock: who waits for whom, along the cycle if there is one. The chip does not end.
    faults : tuple of str
        Mismatches at the end of the run: payloads left over, never read or never taken, and units
        that wait for more when engines, loads and stores have ended.
    open_order : tuple of str
        Streams of an AGCU whose boxes have no fixed order. If there are any, an image that is not
        live deadlocks in one order and may end in another.
    early : int
        Vectors s of the buffers before forks, which the run leaves out: where streams meet again, a
        program may be refused up to s vectors before the depth at which the chip stops.
    """

    live: bool
    steps: int = 0
    moved: int = 0
    waits: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    open_order: tuple[str, ...] = ()
    early: int = 0


def _waits(stuck: list[Actor]) -> tuple[str, ...]:
    """Waits of actors that have not ended: a cycle if there is one, else the longest chain."""
    best: tuple[str, ...] = ()
    for start in stuck:
        path: list[tuple[Actor, str]] = []
        seen: dict[Actor, int] = {}
        actor: Actor | None = start
        while actor is not None and actor not in seen:
            reasons = actor.reasons()
            if not reasons:
                path.append((actor, f"{actor.name} has ended"))
                break
            # Prefer an actor that waits itself: it leads to the cycle.
            what, other = next(
                ((what, other) for what, other in reasons if other and other.reasons()), reasons[0]
            )
            seen[actor] = len(path)
            path.append((actor, f"{actor.name} waits for {what}"))
            actor = other
        if actor is not None and actor in seen:
            return tuple(text for _, text in path[seen[actor] :])
        if len(path) > len(best):
            best = tuple(text for _, text in path)
    return best


def _dead_ends(program: ChipProgram, nets: Nets) -> Iterator[str]:
    on = set(enabled_inputs(program))
    for root, net in nets.nets.items():
        for leaf, _ in net.leaves:
            if isinstance(leaf, DeadEnd):
                yield f"{root} goes to {leaf}"
            elif isinstance(leaf, Input) and leaf not in on:
                yield f"{root} goes to {leaf}, which is off"


def _leftovers(network: Network) -> list[str]:
    """Mismatches at the end of a run without deadlock."""
    faults = [
        f"{consumer.left()} left over in front of {consumer.name}"
        for consumer in network.consumers
        if consumer.left()
    ]
    for actor in network.actors:
        faults += actor.leftovers()
    for actor in network.actors:
        if isinstance(actor, Engine):
            kind = "fills" if isinstance(actor, WriteEngine) else "empties"
            if not actor.others:
                faults.append(f"{actor.name} {kind} slots that no other engine has")
            faults += [
                f"{actor.name} {kind} {actor.turns} slots, but {other.name} has {other.turns}"
                for other in actor.others
                if isinstance(actor, WriteEngine) and other.turns != actor.turns
            ]
    return faults


def _run(
    program: ChipProgram, nets: Nets, packets: StreamPackets, order: int, whole: bool, limit: int
) -> tuple[Network, Liveness]:
    network = Network(program, nets, packets, order, limit)
    network.run(whole=whole)
    stuck = [actor for actor in network.actors if actor.reasons()]
    waits = _waits([actor for actor in stuck if actor.ends_launch])
    faults = [*_dead_ends(program, nets), *packets.faults]
    if not waits:
        faults += [*_waits(stuck), *_leftovers(network)]
    else:
        ended = (actor for actor in network.actors if not actor.reasons())
        faults += [fault for actor in ended for fault in actor.leftovers()]
    faults += [
        f"{stored.name} has {stored.most} tokens to send, more than {MAX_CREDITS}"
        for stored in network.stored
        if stored.most > MAX_CREDITS
    ]
    machine = network.machine
    live = not waits and not faults
    return network, Liveness(
        live,
        machine.steps,
        machine.moved,
        waits,
        tuple(dict.fromkeys(faults)),
        tuple(server.name for server in network.choices),
        network.early,
    )


def prove(
    program: ChipProgram, *, repeat: int = 1, whole: bool = False, limit: int = MOST_STEPS
) -> Liveness:
    """Decide the liveness of a decoded image by its token-level run.

    The result holds for every timing of links, units and memory; docs/liveness.md says why. A
    program that exceeds the step limit counts as not live. An iteration that ends as it began
    may be followed by any number of them, so only one is run.

    Parameters
    ----------
    program : ChipProgram
        A decoded image.
    repeat : int
        Iterations of the launch.
    whole : bool
        Simulate every period, also those that could be skipped.
    limit : int
        Most steps of a run.
    """
    nets = find_nets(program)
    try:
        return _decided(program, nets, repeat, whole, limit)
    except (CyclicStreamError, StepLimitError) as error:
        return Liveness(live=False, waits=(str(error),))


def _decided(program: ChipProgram, nets: Nets, repeat: int, whole: bool, limit: int) -> Liveness:
    """Result of one run, or of two where the order of boxes is open."""
    packets = StreamPackets(program, nets)
    network, first = _run(program, nets, packets, 0, whole, limit)
    if repeat > 1 and first.live:
        return _repeated(network, first)
    if not network.choices or not first.live:
        return first
    if len(network.choices) > 1:
        names = " and ".join(server.name for server in network.choices)
        return dataclasses.replace(
            first,
            live=False,
            waits=(f"Order of boxes must be covered by tokens, not left open at {names}",),
        )
    _, second = _run(program, nets, packets, 1, whole, limit)
    return dataclasses.replace(
        second, steps=first.steps + second.steps, moved=first.moved + second.moved
    )


def _repeated(network: Network, first: Liveness) -> Liveness:
    """Result for any number of iterations, given that of one which is live."""
    faults = [
        f"Order of boxes must be covered by tokens in a kernel that repeats, "
        f"not left open at {server.name}"
        for server in network.choices
    ]
    faults += network.restart_faults()
    return dataclasses.replace(first, live=not faults, faults=tuple(faults))


def require_live(program: ChipProgram, *, repeat: int = 1) -> Liveness:
    """Refuse a program that is not live for so many iterations.

    Raises
    ------
    LivenessError
        With the waits or the mismatches in words.
    """
    answer = prove(program, repeat=repeat)
    if not answer.live:
        causes = answer.waits + answer.faults
        if answer.waits and answer.early:
            causes += (f"{answer.early} vectors of room before forks are not counted",)
        raise LivenessError(
            f"Program must be live, not stop or leave something behind: {'; '.join(causes)}",
            where=causes[0].split(" waits for ")[0],
            value=list(causes),
            rule="every stream must be taken, and every slot that is waited for filled or freed",
        )
    return answer
