"""Lane code: the program of one PCU's lanes with the values of the tile IR that pass its ports."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import AuxiliaryUse, ElementForm, PhaseSource
from sw.ir.format_rules import Format

__all__ = ["CodedPhase", "LaneCode", "changes", "lower_halves"]


@dataclasses.dataclass(frozen=True)
class CodedPhase:
    """A phase of a lane program, and the values of its streams by name.

    Parameters
    ----------
    phase : LanePhase
    source : str or None
        Value whose packet comes at the activation port; None in a phase of STATISTICS.
    auxiliary, second : str or None
        Value that the auxiliary stream gives, and the second one of a stream of pairs.
    result : str or None
        Value that the packet of results holds, an output or a temporary; None if the phase only
        changes a statistic.
    """

    phase: LanePhase
    source: str | None
    auxiliary: str | None
    result: str | None
    second: str | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """Values that the auxiliary stream gives."""
        return tuple(each for each in (self.auxiliary, self.second) if each is not None)


def changes(phases: Sequence[LanePhase]) -> int:
    """Number of changes of phase, in a strip and to the next one, at which the lanes pause."""
    following = (*phases[1:], phases[0])
    return sum(not b.follows(a) for a, b in zip(phases, following, strict=True))


@dataclasses.dataclass(frozen=True)
class LaneCode:
    """Program of one PCU's lanes: its phases, and what passes the ports in each.

    Parameters
    ----------
    phases : tuple of CodedPhase
        All phases with a packet have the same source.
    constants : tuple of int
        Words of 32 bits.
    formats : mapping of str to Format
        Format in which each value passes the ports.
    """

    phases: tuple[CodedPhase, ...]
    constants: tuple[int, ...]
    formats: Mapping[str, Format]

    @functools.cached_property
    def program(self) -> LaneProgram:
        """Program of the lanes.

        Raises
        ------
        BadInputError
            If the lanes cannot run it.
        """
        return LaneProgram(tuple(each.phase for each in self.phases), self.constants)

    @property
    def source(self) -> str:
        """Value at the activation port, the same packet in each of the `packet_phases`."""
        return next(each.source for each in self.phases if each.source is not None)

    @property
    def auxiliary(self) -> str | None:
        """Value beside the packets, if there is one: the first of `beside`."""
        return next(iter(self.beside), None)

    @functools.cached_property
    def changes(self) -> int:
        """Number of changes of phase, in a strip and to the next one, at which the lanes pause."""
        return changes([each.phase for each in self.phases])

    @functools.cached_property
    def beside(self) -> tuple[str, ...]:
        """Values that phases take beside the packets, in their order.

        Joined phases take two at most, of which the first is latched.
        """
        return tuple(dict.fromkeys(value for each in self.phases for value in each.beside))

    @property
    def result(self) -> str:
        """Value that the last phase sends."""
        value = self.phases[-1].result
        assert value is not None
        return value

    @property
    def packet_phases(self) -> int:
        """Phases that take a packet: each element of the source passes the lanes so often."""
        return sum(each.phase.source is not PhaseSource.STATISTICS for each in self.phases)

    def packets(self, value: str) -> int:
        """Packets of a value that it takes at the activation port: one for joined phases."""
        return sum(each.source == value and not each.phase.kept_words for each in self.phases)

    def sends_statistic(self, value: str) -> bool:
        """Whether a result is sent once for a packet, not for each of its vectors."""
        return any(each.source is None for each in self.phases if each.result == value)


def lower_halves(code: LaneCode, values: Collection[str]) -> LaneCode:
    """A lane program for tiles of fp32, of which some are bf16 in the lower halves of vectors."""
    phases = []
    for each in code.phases:
        phase = each.phase
        if each.source in values:
            phase = dataclasses.replace(phase, form=ElementForm.BF16_LOWER)
        if each.auxiliary in values and phase.auxiliary is AuxiliaryUse.VECTOR:
            phase = dataclasses.replace(phase, auxiliary_form=ElementForm.BF16_LOWER)
        phases.append(dataclasses.replace(each, phase=phase))
    return dataclasses.replace(code, phases=tuple(phases))
