"""Loop nests unrolled into arrays: every step of a counter chain at once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.descriptor import MAX_RANK
from hw.arch.errors import BadInputError
from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram
from hw.arch.words.pmu_word import Level

__all__ = [
    "MOST_STEPS",
    "StepLimitError",
    "Visits",
    "Walk",
    "address_walk",
    "box_owners",
    "box_points",
    "box_sizes",
    "index_vectors",
    "plain_counts",
    "vectors_of",
    "visits",
    "walk",
]

#: Steps of one counter chain, and of one token-level run: some hundred MB, some ten seconds.
MOST_STEPS = 1 << 22
#: Most vectors, so that sums of counts fit 64 bits.
_MOST_VECTORS = 1 << 60

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class StepLimitError(BadInputError):
    """A program with too many steps to enumerate; ``value`` is a lower bound on their number."""

    kind = "step-limit"

    def __init__(self, noun: str, steps: int, limit: int) -> None:
        super().__init__(
            f"{noun} must have at most {limit:,} steps, not {steps:,} or more",
            value=steps,
            rule=f"at most {limit:,} steps",
        )


@dataclasses.dataclass(frozen=True)
class Walk:
    """All steps of a loop nest, in order.

    Parameters
    ----------
    indices : tuple of array
        Per loop, its index at every step.
    ends : tuple of array
        Per loop, whether it is at its last index.
    offset : array
        Sum of index × stride.
    """

    indices: tuple[Ints, ...]
    ends: tuple[Bools, ...]
    offset: Ints

    def last(self, level: int) -> Bools:
        """Whether loop ``level`` and all loops inside it are at their last index."""
        marks = np.ones(len(self.offset), np.bool_)
        for ends in self.ends[level:]:
            marks &= ends
        return marks


def walk(loops: Sequence[LoopProgram]) -> Walk:
    """Unroll a nest, outermost loop first; a loop without iterations has no steps.

    Raises
    ------
    StepLimitError
        If there are more than ``MOST_STEPS``.
    """
    indices: list[Any] = []
    ends: list[Any] = []
    offset = np.zeros(1, np.int64)
    for loop in loops:
        if loop.base == 1 and not loop.slope:
            indices.append(np.zeros(len(offset), np.int64))
            ends.append(np.ones(len(offset), np.bool_))
            continue
        counts = np.full(len(offset), loop.base, np.int64)
        if loop.slope:
            counts += loop.slope * indices[loop.outer]
            counts >>= loop.shift
        np.maximum(counts, 0, out=counts)
        total = int(counts.sum())
        if total > MOST_STEPS:
            raise StepLimitError("Loop nest", total, MOST_STEPS)
        rows = np.repeat(np.arange(len(offset)), counts)
        index = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        indices = [each[rows] for each in indices] + [index]
        ends = [each[rows] for each in ends] + [index == counts[rows] - 1]
        offset = offset[rows] + index * loop.stride
    return Walk(tuple(indices), tuple(ends), offset)


def plain_counts(engine: EngineProgram) -> tuple[int, ...] | None:
    """Iterations of each loop of an engine's nest; None if one depends on an outer index."""
    loops = engine.chain.loops
    if any(loop.slope for loop in loops):
        return None
    return tuple(loop.base for loop in loops)


def vectors_of(counts: Sequence[int]) -> int:
    """Number of vectors of a nest with constant loop counts.

    Raises
    ------
    StepLimitError
        If the number exceeds the limit.
    """
    total = math.prod(counts)
    if total > _MOST_VECTORS:
        raise StepLimitError("Stream of vectors", total, _MOST_VECTORS)
    return total


def address_walk(engine: EngineProgram) -> Walk:
    """All steps of an engine."""
    return walk(engine.chain.loops)


@dataclasses.dataclass(frozen=True)
class Visits:
    """Visits of an engine to its slots, in order.

    Parameters
    ----------
    turn : array
        Number of the slot's filling since the start, the same for repeated visits; it is slot
        ``turn % count``.
    closes : array
        Whether the visit is the last one to this filling.
    vectors : array
        Vectors moved.
    """

    turn: Ints
    closes: Bools
    vectors: Ints


def visits(engine: EngineProgram) -> Visits:
    """Enumerate the visits of an engine to its slots."""
    loops = engine.chain.loops
    outer = walk(loops[: Level.ADDRESS])
    slots = outer.indices[Level.SLOTS]
    # The last step of a window gives its number of slots; the next window's slots follow them.
    ends = outer.last(Level.REPEATS)
    sizes = slots[ends] + 1
    window: Ints = np.cumsum(ends) - ends
    turn = (np.cumsum(sizes) - sizes)[window] + slots
    if any(loop.slope for loop in loops[Level.ADDRESS :]):
        whole = walk(loops)
        begins = whole.last(Level.ADDRESS)
        vectors = np.bincount(np.cumsum(begins) - begins, minlength=len(turn))
    else:
        counts = [loop.base for loop in loops[Level.ADDRESS :]]
        vectors = np.full(len(turn), vectors_of(counts))
    return Visits(turn, outer.ends[Level.REPEATS], vectors)


def box_points(program: IssuerProgram) -> Ints:
    """Coordinates of every command of one program of an issuer, one row each."""
    steps = walk(program.chain().loops)
    points = np.zeros((len(steps.offset), MAX_RANK), np.int64)
    for index, loop in zip(steps.indices, program.loops, strict=False):
        points[:, loop.dimension] += index * loop.step
    return points


def box_owners(issuer: IssuerProgram) -> Ints:
    """Position in an issuer's list of the program of every command, in order.

    Programs that are equal are one, at the place of the first: so the list of several iterations
    has the periods of its iterations.

    Raises
    ------
    StepLimitError
        If there are more than ``MOST_STEPS``.
    """
    programs = issuer.programs
    counts = [len(box_points(program)) for program in programs]
    if sum(counts) > MOST_STEPS:
        raise StepLimitError("List of loop nests", sum(counts), MOST_STEPS)
    if len(counts) == 1:
        return np.broadcast_to(np.int64(0), counts)
    return np.repeat([programs.index(program) for program in programs], counts)


def box_sizes(agcu: AgcuProgram, issuer: IssuerProgram, beat_bytes: int) -> Ints:
    """Vectors of every box of an issuer, in order.

    Parameters
    ----------
    agcu : AgcuProgram
    issuer : IssuerProgram
        One of its issuers.
    beat_bytes : int
        Bytes per vector.
    """
    sizes = [
        agcu.descriptors[program.descriptor][0].box_bytes // beat_bytes
        for program in issuer.programs
    ]
    owners = box_owners(issuer)
    if len(sizes) == 1:
        return np.broadcast_to(np.int64(sizes[0]), owners.shape)
    return np.array(sizes, np.int64)[owners]


def index_vectors(issuer: IssuerProgram, per_vector: int) -> Ints:
    """Per box of an issuer, whether it takes the first index of a vector; none without indices.

    Parameters
    ----------
    issuer : IssuerProgram
    per_vector : int
        Indices of a vector. Each program begins with a new one.
    """
    parts = []
    for program in issuer.programs:
        numbers = np.arange(len(box_points(program)))
        parts.append((numbers % per_vector == 0) & bool(program.index))
    return np.concatenate(parts).astype(np.int64)
