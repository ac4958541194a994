"""Phases of a lane program that are joined by kept words, and pass a packet together."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from hw.arch.checks import refusal
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.phase_word import (
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
)

__all__ = ["JoinedPhases", "joined_phases"]


@dataclasses.dataclass(frozen=True)
class JoinedPhases:
    """A phase that takes a packet, and those behind it that read what it keeps of each element.

    The lanes run them over a strip of the packet, one after another, then over the next strip
    (`hw.arch.lanes.lane_room.kept_groups`). What passes the ports is that of a single phase: the
    first one's source, the vectors that are taken beside it, the last one's results. Two phases may
    take the auxiliary stream: beside a packet comes one vector for the first of them, which has
    `AuxiliaryUse.LATCHED`, and then those of the second one.

    Parameters
    ----------
    phases : tuple of LanePhase
        One, or more of which all but the last keep words.

    Raises
    ------
    BadInputError
        If they cannot be run strip by strip.
    """

    phases: tuple[LanePhase, ...]

    def __post_init__(self) -> None:
        first, *rest = self.phases
        if _reads_kept(first):
            raise refusal("Phase that reads kept words", "follow one that keeps", "the first phase")
        if self.phases[-1].reduction.keeps:
            raise refusal(
                "Phase that keeps words", "come before one that reads them", "the last one"
            )
        kept = _kept(first)
        for phase in rest:
            if phase.source is not first.source or phase.form is not first.form:
                raise refusal("Source of a joined phase", "be that of the first", phase.source.name)
            if any(Operand.X in each for each in phase.operands.values()):
                raise refusal("Operand of a phase that reads kept words", "not be of a stream", "X")
            if phase.reduction is Reduction.KEEP_BOTH:
                raise refusal("Phase that keeps x", "take a packet", phase.reduction.name)
            for number in sorted(phase.kept_words - kept):
                raise refusal("Kept word", "be kept by a joined phase before", number)
            kept |= _kept(phase)
        for phase in self.phases[:-1]:
            if phase.result is not ResultForm.NONE or phase.reduction.changes:
                raise refusal("Phase before a joined one", "only keep words", phase.result.name)
        if rest and first.source is PhaseSource.STATISTICS:
            raise refusal("Source of joined phases", "be a stream", first.source.name)
        if rest and self.reduction.changes and self.statistic in self.statistics:
            raise refusal("Statistic that joined phases change", "not be read", self.statistic)
        self._check_taking()

    def _check_taking(self) -> None:
        taking = self.taking
        if len(taking) > 2:
            rule = "be at most two"
            raise refusal("Joined phases that take the auxiliary stream", rule, len(taking))
        if taking and taking[-1].auxiliary is AuxiliaryUse.LATCHED:
            rule = "be followed by a joined phase that takes the stream; use HELD"
            raise refusal("Phase of a latched vector", rule, "the last one that does")
        if len(taking) == 2 and not self.latches:
            rule = "be LATCHED where another joined phase takes the stream behind it"
            raise refusal("Auxiliary use", rule, taking[0].auxiliary.name)

    @property
    def source(self) -> PhaseSource:
        """Source of the packet."""
        return self.phases[0].source

    @property
    def form(self) -> ElementForm:
        """Form of its elements."""
        return self.phases[0].form

    @functools.cached_property
    def elements_per_word(self) -> int:
        """Elements in 32 bits of a vector of the source."""
        return self.phases[0].elements_per_word

    @functools.cached_property
    def taking(self) -> tuple[LanePhase, ...]:
        """The phases that take the auxiliary stream; of two, the first has `LATCHED`."""
        return tuple(each for each in self.phases if each.auxiliary is not AuxiliaryUse.NONE)

    @property
    def latches(self) -> bool:
        """Whether the first auxiliary vector of a packet is that of a `LATCHED` phase."""
        return bool(self.taking) and self.taking[0].auxiliary is AuxiliaryUse.LATCHED

    @property
    def auxiliary(self) -> AuxiliaryUse:
        """Use of the auxiliary stream, behind the vector that is latched."""
        return self.taking[-1].auxiliary if self.taking else AuxiliaryUse.NONE

    @property
    def auxiliary_form(self) -> ElementForm:
        """Form of its elements, behind the vector that is latched."""
        return self.taking[-1].auxiliary_form if self.taking else ElementForm.WORD

    @property
    def reduction(self) -> Reduction:
        """Change of a statistic."""
        return self.phases[-1].reduction

    @property
    def statistic(self) -> int:
        """Number of the statistic that changes."""
        return self.phases[-1].statistic

    @property
    def result(self) -> ResultForm:
        """Form in which results are sent."""
        return self.phases[-1].result

    @property
    def statistics(self) -> set[int]:
        """Numbers of the statistics that the phases read."""
        return set().union(*(each.statistics for each in self.phases))

    def auxiliary_vectors(self, count: int, words: int) -> int:
        """Vectors of the auxiliary stream beside a packet, as of `LanePhase.auxiliary_vectors`."""
        return sum(each.auxiliary_vectors(count, words) for each in self.taking)

    def follows(self, before: JoinedPhases) -> bool:
        """Whether the first phase may follow the last one of others (`LanePhase.follows`)."""
        return self.phases[0].follows(before.phases[-1])


def joined_phases(phases: Sequence[LanePhase]) -> tuple[JoinedPhases, ...]:
    """Group phases: one that reads kept words belongs to those before it.

    Raises
    ------
    BadInputError
        If a group cannot be run strip by strip.
    """
    groups: list[list[LanePhase]] = []
    for phase in phases:
        if groups and _reads_kept(phase):
            groups[-1].append(phase)
        else:
            groups.append([phase])
    return tuple(JoinedPhases(tuple(each)) for each in groups)


def _reads_kept(phase: LanePhase) -> bool:
    return Fetched.KEPT in (phase.y, phase.z)


def _kept(phase: LanePhase) -> set[int]:
    """Numbers of the words that a phase keeps."""
    if phase.reduction is Reduction.KEEP_BOTH:
        return {0, 1}
    return {phase.statistic} if phase.reduction is Reduction.KEEP else set()
