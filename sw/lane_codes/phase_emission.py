"""A phase of lanes from unit operations, with its streams, statistics and constants chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.phase_word import (
    FIXED_WORDS,
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
)
from sw.lane_codes.lane_code import CodedPhase
from sw.lane_codes.lane_words import Port, Send, UnitOperation, Word

__all__ = ["PlacedPhase"]

_OPERANDS: dict[Word, Operand] = {bits: operand for operand, bits in FIXED_WORDS.items()}
_STATISTICS = (Fetched.STATISTIC_0, Fetched.STATISTIC_1)


@dataclasses.dataclass
class PlacedPhase:
    """A phase in the program of a PCU.

    Parameters
    ----------
    chain : tuple of UnitOperation
    words : tuple of str
        Results of the chain.
    source : str or None
        Value at the activation port; None for a phase of STATISTICS.
    form : ElementForm
        Form of the source.
    x : str or None
        Word that the source gives, if the chain takes it.
    beside : (str, Port, AuxiliaryUse) or None
        Word that the auxiliary stream gives.
    second : (str, Port) or None
        Second word that it gives in a stream of pairs.
    statistics : mapping of str to int
        Words that statistics give, and their numbers.
    number : str or None
        Word that is the number of a vector in its packet.
    reduction, statistic : Reduction, int
        Change of a statistic.
    send : Send or None
    """

    chain: tuple[UnitOperation, ...]
    words: tuple[str, ...]
    source: str | None
    form: ElementForm = ElementForm.WORD
    x: str | None = None
    beside: tuple[str, Port, AuxiliaryUse] | None = None
    second: tuple[str, Port] | None = None
    statistics: Mapping[str, int] = dataclasses.field(default_factory=dict)
    number: str | None = None
    reduction: Reduction = Reduction.NONE
    statistic: int = 0
    send: Send | None = None

    def coded(self, constants: Sequence[int]) -> CodedPhase:
        """The phase in a program with these constants."""
        fetched = {word: _STATISTICS[number] for word, number in self.statistics.items()}
        if self.number is not None:
            fetched = {self.number: Fetched.ROW} | fetched
        if self.second is not None:
            fetched = {self.second[0]: Fetched.AUXILIARY_SECOND} | fetched
        if self.beside is not None:
            fetched = {self.beside[0]: Fetched.AUXILIARY} | fetched
        names: dict[Word, Operand] = dict(zip(fetched, (Operand.Y, Operand.Z)))
        if self.x is not None:
            names[self.x] = Operand.X
        for number, bits in enumerate(constants):
            names[bits] = Operand(Operand.CONSTANT_0.value + number)
        words = [*fetched.values(), Fetched.NONE, Fetched.NONE]
        _, port, use = self.beside or (None, None, AuxiliaryUse.NONE)
        phase = LanePhase(
            PhaseSource.STATISTICS if self.source is None else PhaseSource.ACTIVATION,
            form=self.form,
            auxiliary=use,
            auxiliary_form=port.form if port else ElementForm.WORD,
            y=words[0],
            z=words[1],
            reduction=self.reduction,
            statistic=self.statistic,
            result=self.send.form if self.send else ResultForm.NONE,
            **self._units(names),
        )
        result = self.send.value if self.send else None
        beside, second = port.value if port else None, self.second
        return CodedPhase(phase, self.source, beside, result, second[1].value if second else None)

    def _units(self, names: Mapping[Word, Operand]) -> dict[str, Any]:
        """Order and operands of the units; those that the chain does not use come first."""
        units = tuple(each.unit for each in self.chain)
        order = next(each for each in UnitOrder if each.units[-len(units) :] == units)
        # Without a source there is no x.
        unused = Operand.X if self.source is not None else Operand.Y
        fields: dict[str, Any] = {
            "order": order,
            "fma": (unused, Operand.ONE, Operand.MINUS_ZERO),
            "argument": unused,
        }
        before: str | None = None
        for operation, word in zip(self.chain, self.words, strict=True):
            known: dict[Word, Operand] = {**_OPERANDS, **names}
            if before is not None:
                known[before] = Operand.PREVIOUS
            operands = tuple(known[each] for each in operation.operands)
            if operation.unit == "fma":
                fields |= {
                    "fma": operands,
                    "negate_product": operation.negate_product,
                    "negate_addend": operation.negate_addend,
                }
            elif operation.unit == "alu":
                fields |= {"alu": operation.code, "alu_operands": operands}
            else:
                fields |= {"function": operation.code, "argument": operands[0]}
            before = word
        return fields
