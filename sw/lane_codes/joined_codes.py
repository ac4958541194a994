"""Lane programs of one phase joined into fewer: results pass from phase to phase as kept words.

A chain of PCUs runs one phase each. Where phases are joined (`hw.arch.lanes.joined_phases`), one
PCU runs several of them on the elements that it has, so any number of PCUs shares the work evenly.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.arch.lanes.joined_phases import JoinedPhases
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_room import kept_groups
from hw.arch.lanes.phase_word import (
    CONSTANTS,
    PHASES,
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    Reduction,
    ResultForm,
    UnitOrder,
)
from hw.numeric.alu_codes import AluOperation
from sw.lane_codes.lane_code import CodedPhase, LaneCode, changes
from sw.timing.timed_lanes import KEPT_AFTER, PHASE_CHANGE

__all__ = ["KnownJoins", "cycles_per_group", "joined_codes", "joined_firsts", "strip_cycles"]

#: Joined programs, or None, by the identities of those that are joined and what one may take
#: beside its packets; with the programs, whose identities stay theirs.
KnownJoins: TypeAlias = dict[tuple[int, ...], tuple[LaneCode | None, tuple[LaneCode, ...]]]

_FETCHED = (Operand.Y, Operand.Z)
_NONE_BESIDE = {"auxiliary": AuxiliaryUse.NONE, "auxiliary_form": ElementForm.WORD}


def joined_codes(
    codes: Sequence[LaneCode],
    outputs: Collection[str],
    most: int = PHASES,
    *,
    latched: bool = False,
    known: KnownJoins | None = None,
) -> tuple[LaneCode, ...]:
    """Join successive programs of a chain, each with as many behind it as one PCU can run.

    Parameters
    ----------
    codes : sequence of LaneCode
        Chain of programs of one phase each, in an order in which they can run.
    outputs : collection of str
        Values that are stored.
    most : int
        Most phases of a program.
    latched : bool
        Whether the first program may take a vector, and something else for another of its phases.
    known : KnownJoins
        Programs that were joined before, by other limits or in a part of the chain.
    """
    known = {} if known is None else known
    found: list[LaneCode] = []
    rest = list(codes)
    while rest:
        taken, code = 1, rest[0]
        for count in range(2, min(most, len(rest)) + 1):
            later = {value for each in rest[count:] for value in _taken(each)}
            takes = 2 if latched and not found else 1
            joined = _joined(rest[:count], later.union(outputs), takes, known)
            if joined is not None:
                taken, code = count, joined
        found.append(code)
        rest = rest[taken:]
    return tuple(found)


def joined_firsts(
    codes: Sequence[LaneCode], outputs: Collection[str]
) -> Iterator[tuple[LaneCode, ...]]:
    """The chain with the last phase of its first program joined with some of the programs behind.

    Parameters
    ----------
    codes : sequence of LaneCode
        Chain of programs, of which all but the first have one phase, in an order in which they can
        run.
    outputs : collection of str
        Values that are stored.
    """
    for count in range(2, len(codes) + 1):
        later = {value for each in codes[count:] for value in _taken(each)}
        joined = _joined(codes[:count], later.union(outputs), 1, {})
        if joined is not None:
            yield joined, *codes[count:]


def cycles_per_group(code: LaneCode, config: ChipConfig, strip: int | None = None) -> float:
    """Cycles that a PCU takes for each group of elements, in strips of joined phases.

    Parameters
    ----------
    code : LaneCode
        Its phases take a packet together.
    config : ChipConfig
    strip : int, optional
        Groups of a strip, if packets have fewer than can be kept.
    """
    return strip_cycles(len(code.phases), code.changes, config, strip)


def strip_cycles(phases: int, waits: int, config: ChipConfig, strip: int | None = None) -> float:
    """Cycles for each group of a strip, over which so many joined phases pass.

    Parameters
    ----------
    phases : int
    waits : int
        Those that cannot follow the one before at once.
    config : ChipConfig
    strip : int, optional
        As of `cycles_per_group`.
    """
    if phases == 1:
        return 1.0
    strip = strip or kept_groups(width_bits=config.width_bits, lanes=config.pcu.lanes)
    waits = waits if strip >= KEPT_AFTER else phases
    return phases + waits * PHASE_CHANGE / strip


def _taken(code: LaneCode) -> set[str]:
    """Values at the inputs of a program."""
    return {each for phase in code.phases for each in (phase.source, *phase.beside) if each}


def _joined(
    codes: Sequence[LaneCode], later: set[str], takes: int, known: KnownJoins
) -> LaneCode | None:
    """One program for some, or None if a PCU cannot run it.

    Others take what is in ``later``; it has so many values beside its packets, or fewer.
    """
    if later.intersection(each.phases[-1].result or "" for each in codes[:-1]):
        return None
    key = (*map(id, codes), takes)
    if key not in known:
        known[key] = (_of_one_pcu(codes, takes), tuple(codes))
    return known[key][0]


def _of_one_pcu(codes: Sequence[LaneCode], takes: int) -> LaneCode | None:
    """One program for some, of which others take the last result alone; None if there is none."""
    lead = codes[0].phases[:-1]
    phases = [each.phases[-1] for each in codes]
    if any(len(each.phases) != 1 for each in codes[1:]) or len(lead) + len(phases) > PHASES:
        return None
    made = [each.result for each in phases]
    if any(each.phase.reduction is not Reduction.NONE or each.second for each in phases):
        return None
    if any(each.phase.result is not ResultForm.WORD for each in phases[:-1]):
        return None
    own = set(codes[0].constants) if lead else set()
    constants = [*codes[0].constants] if lead else []
    constants += sorted({word for code in codes for word in _constants(code)} - own)
    if len(constants) > CONSTANTS:
        return None
    try:
        joined = _Joiner(codes, constants).phases(takes)
    except BadInputError:
        return None
    if joined is None:
        return None
    formats = {name: form for code in codes for name, form in code.formats.items()}
    kept = {each for each in made[:-1] if each}
    return LaneCode(
        (*lead, *joined),
        tuple(constants),
        {name: form for name, form in formats.items() if name not in kept},
    )


def _constants(code: LaneCode) -> Iterator[int]:
    """Constants that the last phase of a program names."""
    named = {each for operands in code.phases[-1].phase.operands.values() for each in operands}
    for number, word in enumerate(code.constants):
        if Operand(Operand.CONSTANT_0.value + number) in named:
            yield word


class _Joiner:
    """Places of words in the phases that are joined: the last one of each program."""

    def __init__(self, codes: Sequence[LaneCode], constants: Sequence[int]) -> None:
        self._codes, self._constants = codes, constants
        self._coded = [each.phases[-1] for each in codes]
        self._source = codes[0].source
        self._made = {each.result for each in self._coded}
        #: What each of the kept words is.
        self._kept: list[str | None] = [None, None]

    def phases(self, takes: int) -> tuple[CodedPhase, ...] | None:
        """The joined phases, or None if the words that an element needs are not kept.

        Raises
        ------
        BadInputError
            If the lanes cannot run them.
        """
        found: list[CodedPhase] = []
        for number, coded in enumerate(self._coded):
            fields: dict[str, Any] = {}
            beside = coded.auxiliary
            moved = self._constants_moved(self._codes[number])
            if number:
                fetched = self._fetched(coded)
                if fetched is None:
                    return None
                fields, beside, own = fetched
                moved |= own
            result = coded.result
            if number + 1 < len(self._coded):
                keep = self._keep(number, coded)
                if keep is None:
                    return None
                fields |= keep | {"result": ResultForm.NONE}
                result = None
            phase = dataclasses.replace(coded.phase, **_operands(coded.phase, moved), **fields)
            found.append(CodedPhase(phase, self._source, beside, result))
        taking = [number for number, each in enumerate(found) if each.auxiliary is not None]
        if len(taking) > takes:
            return None
        if len(taking) == 2:
            first, last = (found[each] for each in taking)
            if first.phase.auxiliary is not AuxiliaryUse.HELD or first.auxiliary == last.auxiliary:
                return None
            phase = dataclasses.replace(first.phase, auxiliary=AuxiliaryUse.LATCHED)
            found[taking[0]] = dataclasses.replace(first, phase=phase)
        ordered = _in_one_order([each.phase for each in found])
        JoinedPhases(ordered)
        return tuple(
            dataclasses.replace(each, phase=phase)
            for each, phase in zip(found, ordered, strict=True)
        )

    def _constants_moved(self, code: LaneCode) -> dict[Operand, Operand]:
        """Numbers of a program's constants among all."""
        first = Operand.CONSTANT_0.value
        return {
            Operand(first + number): Operand(first + self._constants.index(word))
            for number, word in enumerate(code.constants)
            if word in self._constants
        }

    def _keep(self, number: int, coded: CodedPhase) -> dict[str, Any] | None:
        """Fields that keep the result of a phase, in a word that nothing needs any more."""
        wanted = {
            value for each in self._coded[number + 1 :] for value in (each.source, each.auxiliary)
        }
        if number == 0 and self._source in wanted:
            self._kept = [self._source, coded.result]
            return {"reduction": Reduction.KEEP_BOTH}
        free = (word for word, each in enumerate(self._kept) if each is None or each not in wanted)
        word = next(free, None)
        if word is None:
            return None
        self._kept[word] = coded.result
        return {"reduction": Reduction.KEEP, "statistic": word}

    def _fetched(
        self, coded: CodedPhase
    ) -> tuple[dict[str, Any], str | None, dict[Operand, Operand]] | None:
        """Fields of a joined phase for its words, the value beside them, and moved operands."""
        phase = coded.phase
        used = {each for operands in phase.operands.values() for each in operands}
        read = [(Operand.X, coded.source, phase.form, AuxiliaryUse.VECTOR)]
        for operand, origin in ((Operand.Y, phase.y), (Operand.Z, phase.z)):
            if origin is Fetched.AUXILIARY:
                read.append((operand, coded.auxiliary, phase.auxiliary_form, phase.auxiliary))
            elif origin is not Fetched.NONE:
                return None
        own = self._coded[0].phase.form
        fetched, moved = [Fetched.NONE, Fetched.NONE], {}
        outside = []
        for operand, value, form, use in read:
            if value in self._kept:
                # The same bytes may be read as numbers of another form.
                if form is not (own if value == self._source else ElementForm.WORD):
                    return None
                word = self._kept.index(value)
                if operand in used:
                    fetched[word], moved[operand] = Fetched.KEPT, _FETCHED[word]
            elif value in self._made or value == self._source:
                return None
            elif operand in used:
                outside.append((operand, value, form, use))
        if len(outside) > 1 or Fetched.KEPT not in fetched:
            return None
        fields: dict[str, Any] = dict(_NONE_BESIDE)
        beside = None
        for operand, value, form, use in outside:
            if Fetched.NONE not in fetched:
                return None
            word, beside = fetched.index(Fetched.NONE), value
            fetched[word], moved[operand] = Fetched.AUXILIARY, _FETCHED[word]
            fields = {"auxiliary": use, "auxiliary_form": form}
        # What the units that the phase does not use name is there as well.
        moved.setdefault(Operand.X, _FETCHED[fetched.index(Fetched.KEPT)])
        first = self._coded[0].phase
        fields = fields | {
            "source": first.source,
            "form": first.form,
            "y": fetched[0],
            "z": fetched[1],
        }
        return fields, beside, moved


def _operands(phase: LanePhase, moved: Mapping[Operand, Operand]) -> dict[str, Any]:
    """Operands of a phase, some with other names."""
    return {
        "fma": tuple(moved.get(each, each) for each in phase.fma),
        "alu_operands": tuple(moved.get(each, each) for each in phase.alu_operands),
        "argument": moved.get(phase.argument, phase.argument),
    }


def _in_one_order(phases: Sequence[LanePhase]) -> tuple[LanePhase, ...]:
    """Phases in orders of units by which most of them follow the one before at once.

    What comes behind the last unit that a phase uses passes its result on.
    """
    choices = [list(_orders(each)) for each in phases]
    return min(itertools.product(*choices), key=changes)


def _orders(phase: LanePhase) -> Iterator[LanePhase]:
    """The same phase in other orders of the units, the given one first."""
    yield phase
    used = _used(phase)
    passing: dict[str, Any] = {
        "alu": AluOperation.OR,
        "alu_operands": (Operand.PREVIOUS, Operand.ZERO, Operand.ZERO, Operand.ZERO),
    }
    for order in UnitOrder:
        if order is phase.order:
            continue
        if order.units[-len(used) :] == used:
            yield dataclasses.replace(phase, order=order)
        elif "alu" not in used and order.units[-len(used) - 1 :] == (*used, "alu"):
            yield dataclasses.replace(phase, order=order, **passing)


def _used(phase: LanePhase) -> tuple[str, ...]:
    """Units that a phase's result passes."""
    units = phase.order.units
    first = len(units) - 1
    while Operand.PREVIOUS in phase.operands[units[first]]:
        first -= 1
    return units[first:]
