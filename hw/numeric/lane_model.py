"""Golden lanes of a PCU in numpy: packets of results of a lane program, bit-exact.

A vector is a row of W/32 words of uint32, lowest first; element j of b bits is at bit ``j * b``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.arch.lanes.joined_phases import JoinedPhases
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import STATISTICS, PhaseSource, ResultForm
from hw.numeric.phase_results import phase_results, vectors

__all__ = ["LaneModel", "VectorStream"]

Array = npt.NDArray[Any]


class VectorStream(NamedTuple):
    """Vectors of a stream with their marks.

    Members
    -------
    words : array of uint32, vectors × W/32
    last, final : array of bool
        Whether a vector ends a packet, and a pass.
    """

    words: Array
    last: Array
    final: Array


class _Reader:
    """Vectors of a stream that are not taken yet."""

    def __init__(self, stream: VectorStream) -> None:
        self._stream = stream
        self._taken = 0

    def take(self, count: int) -> Array | None:
        """So many vectors, or None if there are fewer."""
        words = self._stream.words[self._taken : self._taken + count]
        self._taken += count
        return words if len(words) == count else None

    def take_packet(self) -> tuple[Array, bool] | None:
        """A packet and its mark `final`, or None if there is none whole."""
        ends = np.flatnonzero(self._stream.last[self._taken :])
        if not len(ends):
            return None
        end = self._taken + int(ends[0]) + 1
        words = self._stream.words[self._taken : end]
        self._taken = end
        return words, bool(self._stream.final[end - 1])


class LaneModel:
    """Lanes of a PCU that run a program; the statistics remain between calls.

    Parameters
    ----------
    program : LaneProgram
    width_bits : int
        Link width W.
    function_bits : int
        Significand bits of the functions.
    """

    def __init__(self, program: LaneProgram, *, width_bits: int, function_bits: int) -> None:
        self._program = program
        self._words = width_bits // 32
        self._function_bits = function_bits
        self._statistics = np.zeros((1, STATISTICS, 2 * self._words), np.uint32)
        self._next = 0

    def run(self, streams: Mapping[PhaseSource, VectorStream]) -> VectorStream:
        """Results of as many phases as the streams have packets for.

        Parameters
        ----------
        streams : mapping of PhaseSource to VectorStream
            Vectors of the activation and the auxiliary stream, and rows of accumulators.
        """
        readers = {source: _Reader(stream) for source, stream in streams.items()}
        sent: list[tuple[Array, bool]] = []
        while (taken := self._take(readers)) is not None:
            phase, words, final, auxiliary = taken
            results = phase_results(
                phase,
                self._program.constants,
                words[np.newaxis],
                auxiliary[np.newaxis],
                self._statistics,
                self._function_bits,
            )
            self._next = (self._next + 1) % len(self._program.joined)
            if phase.result is not ResultForm.NONE:
                packed = vectors(results.reshape(1, -1), phase.result, self._words)
                sent.append((packed[0], final))
        lengths = np.array([len(words) for words, _ in sent], int)
        count = int(lengths.sum())
        last, final_marks = np.zeros(count, bool), np.zeros(count, bool)
        last[lengths.cumsum() - 1] = True
        final_marks[lengths.cumsum() - 1] = [final for _, final in sent]
        none: Array = np.zeros((0, self._words), np.uint32)
        return VectorStream(np.concatenate([none, *(w for w, _ in sent)]), last, final_marks)

    def _take(
        self, readers: Mapping[PhaseSource, _Reader]
    ) -> tuple[JoinedPhases, Array, bool, Array] | None:
        """The next joined phases with their packet, its mark, and vectors beside it."""
        phase = self._program.joined[self._next]
        packet: tuple[Array, bool] | None = np.zeros((1, 2 * self._words), np.uint32), False
        if phase.source is not PhaseSource.STATISTICS:
            own = readers.get(phase.source)
            packet = own.take_packet() if own else None
        if packet is None:
            return None
        words, final = packet
        count = self.auxiliary_vectors(phase, len(words))
        if not count:
            return phase, words, final, words[:0]
        other = readers.get(PhaseSource.AUXILIARY)
        auxiliary = other.take(count) if other else None
        return None if auxiliary is None else (phase, words, final, auxiliary)

    def auxiliary_vectors(self, phase: JoinedPhases, count: int) -> int:
        """Vectors of the auxiliary stream that a packet of ``count`` vectors takes beside it."""
        return phase.auxiliary_vectors(count, self._words)
