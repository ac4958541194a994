"""Steps of loop nests one by one: the independent model of counter chains, engines and issuers."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.descriptor import MAX_RANK
from hw.arch.loops import ChainProgram
from hw.arch.pmu import EngineProgram
from hw.arch.words.pmu_word import ENGINE_LOOPS, Level

__all__ = ["Move", "Step", "coordinates_of", "cycles_of", "moves_of", "steps_of"]


class Step(NamedTuple):
    """One step of a chain.

    Parameters
    ----------
    indices : tuple of int
        Index of each loop.
    offset : int
        Sum of index × stride.
    first, end, last : tuple of bool
        Entry i: loops i and inward are at index 0; loop i alone is at its last index; loops i and
        inward are at their last index.
    """

    indices: tuple[int, ...]
    offset: int
    first: tuple[bool, ...]
    end: tuple[bool, ...]
    last: tuple[bool, ...]


def cycles_of(
    program: ChainProgram,
    indices: tuple[int, ...] = (),
    end: tuple[bool, ...] = (),
    offset: int = 0,
) -> Iterator[Step | None]:
    """Result of each cycle with a consumer always ready: a step, or None for an empty loop."""
    depth = len(indices)
    if depth == len(program.loops):
        first = tuple(not any(indices[i:]) for i in range(depth))
        last = tuple(all(end[i:]) for i in range(depth))
        yield Step(indices, offset, first, end, last)
        return
    loop = program.loops[depth]
    count = loop.base
    if loop.slope:
        count = math.floor((loop.base + loop.slope * indices[loop.outer]) / 2**loop.shift)
    if count <= 0:
        yield None
    for index in range(count):
        inner = (*indices, index), (*end, index == count - 1), offset + index * loop.stride
        yield from cycles_of(program, *inner)


def steps_of(program: ChainProgram) -> Iterator[Step]:
    """Steps in order, as the hardware must take them."""
    return (step for step in cycles_of(program) if step is not None)


class Move(NamedTuple):
    """One step of an engine of a PMU.

    Parameters
    ----------
    slot, lap : int
        Slot, and number of wraps of the ring before.
    position : int
        Element position of lane 0.
    closes : bool
        The engine arrives at a barrier: full if it writes, empty if it reads.
    last, final : bool
        Sideband flags of the vector, for a read engine.
    beyond : bool
        The vector is the constant.
    """

    slot: int
    lap: int
    position: int
    closes: bool
    last: bool
    final: bool
    beyond: bool


def moves_of(engine: EngineProgram, iterations: int = 1) -> Iterator[Move]:
    """Steps of an engine, in order; an iteration goes on in the ring where the last one ended."""
    turn = window = 0
    ring, beyond = engine.ring, engine.beyond
    for step in (step for _ in range(iterations) for step in steps_of(engine.chain)):
        slot = turn % ring.count
        over = (*step.last, True, False)
        yield Move(
            slot=slot,
            lap=turn // ring.count,
            position=ring.base + slot * ring.stride + step.offset,
            closes=step.last[Level.ADDRESS] and step.end[Level.REPEATS],
            last=over[ENGINE_LOOPS + 1 if engine.last_level is None else engine.last_level],
            final=over[ENGINE_LOOPS + 1 if engine.final_level is None else engine.final_level],
            beyond=beyond is not None and step.indices[beyond.loop] >= beyond.limit,
        )
        if step.last[Level.ADDRESS]:
            turn += 1
        if step.last[Level.REPEATS]:
            window = turn
        elif step.last[Level.SLOTS]:
            turn = window


def coordinates_of(program: IssuerProgram) -> Iterator[tuple[int, ...]]:
    """Coordinates of each command of one program of an issuer, in order."""
    for step in steps_of(program.chain()):
        point = [0] * MAX_RANK
        for index, loop in zip(step.indices, program.loops, strict=False):
            point[loop.dimension] += index * loop.step
        yield tuple(point)


def commands_of(issuer: IssuerProgram) -> Iterator[tuple[IssuerProgram, tuple[int, ...]]]:
    """Each command of an issuer's list, in order: its program and its coordinates."""
    for program in issuer.programs:
        for point in coordinates_of(program):
            yield program, point
