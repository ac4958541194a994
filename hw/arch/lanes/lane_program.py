"""Program of a PCU's lanes: phases in turn and constants, packing and unpacking."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from hw.arch.checks import refusal, require_int
from hw.arch.lanes.joined_phases import JoinedPhases, joined_phases
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_phase import LanePhase, mixes_halves
from hw.arch.lanes.phase_word import (
    CONSTANTS,
    PHASES,
    STATISTICS,
    AuxiliaryUse,
    ElementForm,
    PhaseSource,
    ResultForm,
    lane_layout,
    phase_layout,
)

__all__ = ["LaneProgram", "lane_word"]


def lane_word(
    phases: Sequence[LanePhase],
    constants: Sequence[int],
    functions: tuple[LaneFunction, ...] = (),
) -> int:
    """Word of phases and constants, laid out by `lane_layout`."""
    lows, constant_lows = _parts(len(functions))
    lower = any(ElementForm.BF16_LOWER in each.takes_vectors_of for each in phases)
    words = [
        lower << lane_layout(len(functions))["lower"].offset,
        *(phase.pack(functions) << lows[number] for number, phase in enumerate(phases)),
        *(word << constant_lows[number] for number, word in enumerate(constants)),
    ]
    return len(phases) + sum(words)


@functools.cache
def _parts(function_units: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Offsets of the phases and of the constants in a program's word."""
    layout = lane_layout(function_units)
    phases, constants = layout["phases"].offset, layout["constants"].offset
    size = phase_layout(function_units).bits
    return (
        tuple(phases + size * number for number in range(PHASES)),
        tuple(constants + 32 * number for number in range(CONSTANTS)),
    )


@dataclasses.dataclass(frozen=True)
class LaneProgram:
    """Program of a PCU's lanes: its phases in turn, and constants.

    A phase runs over one packet of its source, or once over the statistics; the next one follows,
    and the first one follows the last.

    Parameters
    ----------
    phases : tuple of LanePhase
        1 to `PHASES`.
    constants : tuple of int
        Up to `CONSTANTS` words of 32 bits; the others are 0.

    Raises
    ------
    BadInputError
        If no phase takes a packet, a statistic is read before an earlier phase changed it, or
        phases that keep words cannot be joined.
    """

    phases: tuple[LanePhase, ...]
    constants: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_int("Phases of a lane program", len(self.phases), 1, PHASES)
        require_int("Constants of a lane program", len(self.constants), 0, CONSTANTS)
        for constant in self.constants:
            require_int("Constant of a lane program", constant, 0, (1 << 32) - 1)
        rest = (0,) * (CONSTANTS - len(self.constants))
        object.__setattr__(self, "constants", (*self.constants, *rest))
        if all(each.source is PhaseSource.STATISTICS for each in self.joined):
            raise refusal("Source of one phase", "be a stream", PhaseSource.STATISTICS.name)
        if mixes_halves(self.phases):
            rule = "be BF16_LOWER in all phases of a program or in none"
            raise refusal("Form of vectors of bf16", rule, ElementForm.BF16.name)
        changed: set[int] = set()
        for number, phase in enumerate(self.phases):
            for statistic in sorted(phase.statistics - changed):
                rule = f"be changed by a phase before phase {number}, which reads it"
                raise refusal("Statistic", rule, statistic)
            if phase.reduction.changes:
                changed.add(phase.statistic)

    @functools.cached_property
    def joined(self) -> tuple[JoinedPhases, ...]:
        """The phases in groups, each of which takes a packet or the statistics once."""
        return joined_phases(self.phases)

    @property
    def takes_auxiliary(self) -> bool:
        """Whether a phase takes vectors of the auxiliary stream."""
        return any(
            phase.source is PhaseSource.AUXILIARY or phase.auxiliary is not AuxiliaryUse.NONE
            for phase in self.phases
        )

    @property
    def carries(self) -> bool:
        """Whether results depend on the statistics that the round of the phases before has left.

        A phase changes as many positions as a vector of its source has elements. Those behind the
        words of a vector may be left by a round before, and matter if a phase that reads them sends
        its results.
        """
        old = set(range(STATISTICS))
        for phase in self.joined:
            if phase.elements_per_word == 1:
                continue
            reads_old = bool(phase.statistics & old)
            if reads_old and phase.result is not ResultForm.NONE:
                return True
            if phase.reduction.changes:
                old = old | {phase.statistic} if reads_old else old - {phase.statistic}
        return False

    def pack(self, functions: tuple[LaneFunction, ...] = ()) -> int:
        """Word of the program for lanes with these function units, laid out by `lane_layout`."""
        return lane_word(self.phases, self.constants, functions)

    @classmethod
    def unpack(cls, word: int, functions: tuple[LaneFunction, ...] = ()) -> LaneProgram | None:
        """Program of a word, or None if the lanes are off; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        count = word & (1 << PHASES.bit_length()) - 1
        if not count:
            if word:
                raise refusal("Word of lanes that are off", "be 0", word)
            return None
        require_int("Phases of a lane program", count, 1, PHASES)
        offsets, constants = _parts(len(functions))
        mask = (1 << phase_layout(len(functions)).bits) - 1
        phases = [LanePhase.unpack(word >> low & mask, functions) for low in offsets[:count]]
        if word >> lane_layout(len(functions))["lower"].offset & 1:
            phases = [each.of_lower_halves() for each in phases]
        program = cls(tuple(phases), tuple(word >> low & 0xFFFFFFFF for low in constants))
        if program.pack(functions) != word:
            raise refusal("Word of a lane program", "be 0 behind its last phase", word)
        return program
