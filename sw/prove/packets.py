"""Packet lengths of a stream, and the effect of filters and merges on them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hw.arch.pmu import EngineProgram
from hw.numeric.division import ceil_div
from sw.prove.unrolled_loops import (
    MOST_STEPS,
    StepLimitError,
    address_walk,
    plain_counts,
    vectors_of,
)

__all__ = ["Packets", "Rotation", "cut_packets", "engine_packets", "even_packets", "rotate"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Packets:
    """All packets of a stream, from start to end of the kernel.

    Parameters
    ----------
    lengths : array
        Vectors of each packet that a `last` flag closes.
    finals : array
        Whether the closing vector also has the `final` flag.
    tail : int
        Vectors after the last closed packet.
    """

    lengths: Ints
    finals: Bools
    tail: int = 0

    @property
    def vectors(self) -> int:
        """Total number of vectors."""
        return int(self.lengths.sum()) + self.tail

    def taken(self, modulus: int, index: int) -> Packets:
        """Packets that a filter takes."""
        if modulus == 1:
            return self
        mine = slice(index, None, modulus)
        tail = self.tail if len(self.lengths) % modulus == index else 0
        return Packets(self.lengths[mine], self.finals[mine], tail)

    def taken_vectors(self, modulus: int, index: int) -> Bools:
        """Per vector of the stream, whether a filter takes it."""
        numbers = np.arange(len(self.lengths) + 1) % modulus == index
        return np.repeat(numbers, np.append(self.lengths, self.tail))


def even_packets(count: int, length: int, *, final: bool) -> Packets:
    """Packets of equal length."""
    return Packets(np.full(count, length, np.int64), np.full(count, final))


def cut_packets(sizes: Ints, finals: Bools, length: int) -> Packets:
    """Result packets of a PCU: what belongs together, cut after so many vectors.

    Parameters
    ----------
    sizes : array
        Vectors that belong together: those of a pass, or of a packet of the lanes; at least 1.
    finals : array
        Whether the last of them has `final`.
    length : int
        Vectors of a packet; the last one may have fewer. 0: they are not cut.
    """
    if not length:
        return Packets(sizes, finals)
    counts = ceil_div(sizes, length)
    closing = np.cumsum(counts) - 1
    lengths = np.full(int(counts.sum()), length, np.int64)
    lengths[closing] = sizes - (counts - 1) * length
    marks = np.zeros(len(lengths), np.bool_)
    marks[closing] = finals
    return Packets(lengths, marks)


def engine_packets(engine: EngineProgram) -> Packets:
    """Packets that a read engine sends.

    Raises
    ------
    StepLimitError
        If there are too many to enumerate.
    """
    last, final = engine.last_level, engine.final_level
    counts = plain_counts(engine)
    if counts is not None:
        total = vectors_of(counts)
        if last is None:
            return Packets(np.zeros(0, np.int64), np.zeros(0, np.bool_), total)
        length = math.prod(counts[last:])
        number = total // length
        if number > MOST_STEPS:
            raise StepLimitError("Stream of packets", number, MOST_STEPS)
        finals = np.zeros(number, np.bool_)
        if final is not None:
            every = math.prod(counts[final:]) // length
            finals[every - 1 :: every] = True
        return Packets(np.full(number, length, np.int64), finals)
    steps = address_walk(engine)
    total = len(steps.offset)
    closing = np.flatnonzero(steps.last(last)) if last is not None else np.zeros(0, np.int64)
    lengths = np.diff(closing, prepend=-1)
    ends = steps.last(final)[closing] if final is not None else np.zeros(len(closing), np.bool_)
    return Packets(lengths, ends, total - int(lengths.sum()))


@dataclasses.dataclass(frozen=True)
class Rotation:
    """Output of a merge in a fixed rotation, up to the first turn whose source has no packet left.

    Parameters
    ----------
    packets : Packets
        The merged stream.
    sources : array
        Source of each packet in order; the source of the tail is last, if there is a tail.
    numbers : array
        Index of that packet among those of its source.
    """

    packets: Packets
    sources: Ints
    numbers: Ints


def rotate(streams: Sequence[Packets], counts: Sequence[int]) -> Rotation:
    """Merge streams in a rotation of whole packets.

    Parameters
    ----------
    streams : sequence of Packets
    counts : sequence of int
        Packets per turn.
    """
    sources, numbers, keys, missing = [], [], [], []
    whole = sum(counts)
    before = 0
    for source, (stream, count) in enumerate(zip(streams, counts, strict=True)):
        # One more index than packets: the turn at which the source has none left.
        number = np.arange(len(stream.lengths) + 1)
        key = number // count * whole + before + number % count
        before += count
        sources.append(np.full(len(number) - 1, source))
        numbers.append(number[:-1])
        keys.append(key[:-1])
        missing.append(int(key[-1]))
    stop = min(missing)
    starved = missing.index(stop)
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    order = order[key[order] < stop]
    owners: Ints = np.concatenate(sources)[order]
    places: Ints = np.concatenate(numbers)[order]
    lengths = np.concatenate([stream.lengths for stream in streams])[order]
    finals = np.concatenate([stream.finals for stream in streams])[order]
    tail = streams[starved].tail
    if tail:
        owners = np.append(owners, starved)
        places = np.append(places, len(streams[starved].lengths))
    return Rotation(Packets(lengths, finals, tail), owners, places)
