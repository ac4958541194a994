"""Runs of a lane program's phases over the packets of its streams, known before anything runs."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hw.arch.lanes.joined_phases import JoinedPhases
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import AuxiliaryUse, PhaseSource, ResultForm
from hw.numeric.division import ceil_div
from sw.prove.packets import Packets, even_packets
from sw.prove.unrolled_loops import MOST_STEPS, StepLimitError

__all__ = ["PhaseRuns", "issued_units", "phase_runs", "units_beside"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Cases that are remembered.
_REMEMBERED = 64


@dataclasses.dataclass(frozen=True)
class PhaseRuns:
    """Runs of joined phases in order, each over one packet of its source, or the statistics.

    Parameters
    ----------
    phases : array
        Number of the joined phases.
    counts : array
        Vectors of the packet; 1 for the statistics.
    firsts : array
        Number of its first vector in the source's stream.
    besides, beside_firsts : array
        Vectors of the auxiliary stream taken beside it, and the number of the first.
    sizes : array
        Vectors of its results, 0 if the phase sends none.
    finals : array of bool
        Whether its packet has `final`.
    whole : int
        Runs that end; at most one more begins.
    """

    phases: Ints
    counts: Ints
    firsts: Ints
    besides: Ints
    beside_firsts: Ints
    sizes: Ints
    finals: Bools
    whole: int


def issued_units(phase: JoinedPhases, words: int, sources: int, beside: int) -> int:
    """Units of a packet that such vectors of its streams let the lanes issue.

    A unit is as many elements as a vector has words: no vector ends within one.

    Parameters
    ----------
    phase : LanePhase
    words : int
        Words of a vector, W/32.
    sources, beside : int
        First vectors of the packet, and of the auxiliary stream beside it, that are there.
    """
    units = sources * phase.elements_per_word
    beside -= phase.latches
    if beside < (phase.auxiliary is AuxiliaryUse.HELD):
        return 0
    each = units_beside(phase, words)
    return min(units, beside * each) if each else units


def units_beside(phase: JoinedPhases | LanePhase, words: int) -> int:
    """Units that an auxiliary vector serves; 0 if a phase takes none, or one for its packet.

    Of joined phases, behind the vector that is latched.
    """
    match phase.auxiliary:
        case AuxiliaryUse.NONE | AuxiliaryUse.HELD | AuxiliaryUse.LATCHED:
            return 0
        case AuxiliaryUse.VECTOR:
            return phase.auxiliary_form.per_word
    # Each of its elements serves a vector of the source, or each pair does.
    pair = 2 if phase.auxiliary is AuxiliaryUse.SPREAD_PAIR else 1
    return words * phase.auxiliary_form.per_word // pair * phase.elements_per_word


class _Reader:
    """Place in a stream from which packets or single vectors are taken."""

    def __init__(self, packets: Packets) -> None:
        self.packets = packets
        self._ends: list[int] = np.cumsum(packets.lengths).tolist()
        self._finals: list[bool] = packets.finals.tolist()
        self._packet = 0
        self._vectors = packets.vectors
        self.at = 0

    @property
    def left(self) -> int:
        """Vectors that are not taken yet."""
        return self._vectors - self.at

    def packet(self) -> tuple[int, int, bool] | None:
        """Vectors of the next packet, those that are there, and its mark; None without any."""
        while self._packet < len(self._ends) and self._ends[self._packet] <= self.at:
            self._packet += 1
        if self._packet < len(self._ends):
            count = self._ends[self._packet] - self.at
            return count, count, self._finals[self._packet]
        # Vectors behind the last mark begin a packet that never ends.
        return (self.left + 1, self.left, False) if self.left else None

    def take(self, packets: int) -> None:
        """Take whole packets from the beginning on."""
        self._packet = packets
        self.at = self._ends[packets - 1] if packets else 0


def phase_runs(
    program: LaneProgram, words: int, streams: Mapping[PhaseSource, Packets]
) -> PhaseRuns:
    """Runs of a program's phases until nothing is left of the stream that the next one takes.

    Parameters
    ----------
    program : LaneProgram
    words : int
        Words of a vector, W/32.
    streams : mapping of PhaseSource to Packets
        Packets of the streams that it takes, behind the filters.

    Raises
    ------
    StepLimitError
        If there are too many to enumerate.
    """
    contents = tuple(
        (source, packets.lengths.tobytes(), packets.finals.tobytes(), packets.tail)
        for source, packets in streams.items()
    )
    return _enumerated(_Case(program, words, contents, streams))


@dataclasses.dataclass(frozen=True)
class _Case:
    """All that runs of phases depend on; the streams are those of the contents."""

    program: LaneProgram
    words: int
    contents: tuple[tuple[PhaseSource, bytes, bytes, int], ...]
    streams: Mapping[PhaseSource, Packets] = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=_REMEMBERED)
def _enumerated(case: _Case) -> PhaseRuns:
    """The runs of a case: copies of a chain, the proof and timed runs share it."""
    program, words = case.program, case.words
    readers = {source: _Reader(packets) for source, packets in case.streams.items()}
    other = readers.get(PhaseSource.AUXILIARY, _Reader(even_packets(0, 1, final=False)))
    own_sources = {each.source for each in program.joined}
    sources = [reader for source, reader in readers.items() if source in own_sources]
    rounds = _whole_rounds(program, words, readers, other)
    rows: list[tuple[int, ...]] = []
    begun = whole = len(rounds)
    while whole == begun + len(rows):
        if whole == MOST_STEPS:
            raise StepLimitError("Runs of phases", whole + 1, MOST_STEPS)
        number = whole % len(program.joined)
        phase = program.joined[number]
        own = readers.get(phase.source)
        packet = own.packet() if own else (1, 1, False)
        if packet is None:
            break
        count, there, final = packet
        first = own.at if own else 0
        if own:
            own.at += there
        beside, besides_first = phase.auxiliary_vectors(count, words), other.at
        ready = min(beside, other.left)
        if not own and beside and not any(each.left for each in (other, *sources)):
            # A phase of the statistics that takes the stream waits for the next iteration.
            break
        other.at += ready
        ends = count == there and beside == ready
        units = issued_units(phase, words, there, ready)
        size = 0
        if phase.result is not ResultForm.NONE:
            size = (ceil_div if ends else operator.floordiv)(units, phase.result.per_word)
        rows.append((number, count, first, beside, besides_first, size, final))
        whole += ends
    table = np.concatenate((rounds, np.array(rows, np.int64).reshape(-1, 7)))
    phases, counts, firsts, besides, beside_firsts, sizes, finals = table.T
    return PhaseRuns(
        phases, counts, firsts, besides, beside_firsts, sizes, finals.astype(np.bool_), whole
    )


def _whole_rounds(
    program: LaneProgram, words: int, readers: Mapping[PhaseSource, _Reader], other: _Reader
) -> Ints:
    """Rows of the runs of whole rounds through the phases, which the readers then have taken.

    No rows if a phase takes packets of the auxiliary stream: others would cut them beside theirs.
    """
    sources = [phase.source for phase in program.joined]
    shares = {source: sources.count(source) for source in readers if source in sources}
    none = np.zeros((0, 7), np.int64)
    if PhaseSource.AUXILIARY in sources or not shares:
        return none
    if any((readers[source].packets.lengths == 0).any() for source in shares):
        return none
    wholes = [len(readers[source].packets.lengths) // share for source, share in shares.items()]
    rounds = min(*wholes, MOST_STEPS // len(sources))
    table = np.zeros((rounds, len(sources), 7), np.int64)
    for number, phase in enumerate(program.joined):
        rows = table[:, number]
        rows[:, :2] = number, 1
        if phase.source in shares:
            packets, share = readers[phase.source].packets, shares[phase.source]
            mine = slice(sources[:number].count(phase.source), rounds * share, share)
            rows[:, 1] = packets.lengths[mine]
            rows[:, 2] = (np.cumsum(packets.lengths) - packets.lengths)[mine]
            rows[:, 6] = packets.finals[mine]
        counts, places = np.unique(rows[:, 1], return_inverse=True)
        besides = [phase.auxiliary_vectors(count, words) for count in counts.tolist()]
        sizes = [
            ceil_div(issued_units(phase, words, count, beside), phase.result.per_word)
            if phase.result is not ResultForm.NONE
            else 0
            for count, beside in zip(counts.tolist(), besides, strict=True)
        ]
        rows[:, 3] = np.array(besides, np.int64)[places]
        rows[:, 5] = np.array(sizes, np.int64)[places]
    besides_to = np.cumsum(table[:, :, 3]).reshape(rounds, len(sources))
    table[:, :, 4] = besides_to - table[:, :, 3]
    # Rounds beside which the other stream has all vectors.
    rounds = int(np.searchsorted(besides_to[:, -1], other.left, side="right"))
    for source, share in shares.items():
        readers[source].take(rounds * share)
    other.at = int(besides_to[rounds - 1, -1]) if rounds else 0
    return table[:rounds].reshape(-1, 7)
