"""Phase of a lane program: its checks, packing and unpacking."""

from __future__ import annotations

import dataclasses
import enum
import functools
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from hw.arch.checks import refusal, require_bool, require_int
from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_function import AnyFunction, LaneFunction, function_codes
from hw.arch.lanes.phase_word import (
    STATISTICS,
    AuxiliaryUse,
    ElementForm,
    Fetched,
    Operand,
    PhaseSource,
    Reduction,
    ResultForm,
    UnitOrder,
    phase_layout,
)
from hw.numeric.alu_codes import AluOperation
from hw.numeric.division import ceil_div
from hw.numeric.function_codes import SpecialFunction

__all__ = ["LanePhase", "mixes_halves"]

_INT8 = (ElementForm.INT8, ElementForm.INT8_TO_FP32)
_UNCONSTANT = (Operand.X, Operand.Y, Operand.Z, Operand.PREVIOUS)


@dataclasses.dataclass(frozen=True)
class LanePhase:
    """One phase of a lane program: what every element of a packet passes.

    An element has up to three words: x of the source, y and z. They, constants and the result of
    the unit before are the operands of the three units.

    Parameters
    ----------
    source, form : PhaseSource, ElementForm
        Source of x, and form of its elements.
    auxiliary, auxiliary_form : AuxiliaryUse, ElementForm
        Use of the auxiliary stream beside the source, and form of its elements.
    y, z : Fetched
    order : UnitOrder
    fma : tuple of three Operand
        a, b, c of ``a * b + c``; a is no constant.
    negate_product, negate_addend : bool
    alu, alu_operands : AluOperation, tuple of four Operand
    function, argument : SpecialFunction or LaneFunction, Operand
        The argument is no constant.
    reduction, statistic : Reduction, int
        Change of a statistic, and its number.
    result : ResultForm

    Raises
    ------
    BadInputError
        If a lane cannot run it.
    """

    source: PhaseSource
    form: ElementForm = ElementForm.WORD
    auxiliary: AuxiliaryUse = AuxiliaryUse.NONE
    auxiliary_form: ElementForm = ElementForm.WORD
    y: Fetched = Fetched.NONE
    z: Fetched = Fetched.NONE
    order: UnitOrder = UnitOrder.FMA_ALU_SFU
    fma: tuple[Operand, ...] = (Operand.X, Operand.ONE, Operand.MINUS_ZERO)
    negate_product: bool = False
    negate_addend: bool = False
    alu: AluOperation = AluOperation.ADD
    alu_operands: tuple[Operand, ...] = (Operand.ZERO,) * 4
    function: AnyFunction = SpecialFunction.EXP2
    argument: Operand = Operand.X
    reduction: Reduction = Reduction.NONE
    statistic: int = 0
    result: ResultForm = ResultForm.NONE

    def __post_init__(self) -> None:
        _check_types(self)
        self._check_operands()
        self._check_sources()
        self._check_statistics()

    def _check_operands(self) -> None:
        for name, operand in (("a of the FMA", self.fma[0]), ("the function", self.argument)):
            if operand not in _UNCONSTANT:
                raise refusal(f"Operand {name}", "be X, Y, Z or PREVIOUS", operand.name)
        if Operand.PREVIOUS in self.operands[self.order.units[0]]:
            raise refusal("Operand of the first unit", "not be a result", "PREVIOUS")

    def _check_sources(self) -> None:
        words = (PhaseSource.STATISTICS, PhaseSource.ACCUMULATORS)
        if self.source in words and self.form is not ElementForm.WORD:
            raise refusal(f"Form of {self.source.name}", "be WORD", self.form.name)
        reads = {self.y, self.z}
        uses = self.auxiliary is not AuxiliaryUse.NONE
        if uses and self.source is PhaseSource.AUXILIARY:
            rule = "be NONE where the auxiliary stream is the source"
            raise refusal("Auxiliary use", rule, self.auxiliary.name)
        if uses != (Fetched.AUXILIARY in reads):
            rule = "be taken exactly if y or z is AUXILIARY"
            raise refusal("Auxiliary stream", rule, self.auxiliary.name)
        if (self.auxiliary is AuxiliaryUse.SPREAD_PAIR) != (Fetched.AUXILIARY_SECOND in reads):
            rule = "be SPREAD_PAIR exactly if y or z is AUXILIARY_SECOND"
            raise refusal("Auxiliary use", rule, self.auxiliary.name)
        if not uses and self.auxiliary_form is not ElementForm.WORD:
            rule = "be WORD where the stream is not taken"
            raise refusal("Auxiliary form", rule, self.auxiliary_form.name)
        vectors = self.auxiliary is AuxiliaryUse.VECTOR
        if self.auxiliary_form is ElementForm.BF16_LOWER and not vectors:
            rule = "be of VECTOR alone"
            raise refusal("Auxiliary form BF16_LOWER", rule, self.auxiliary.name)
        held = self.auxiliary in (AuxiliaryUse.HELD, AuxiliaryUse.LATCHED)
        if held and self.auxiliary_form.per_word < self.elements_per_word:
            rule = f"have at least {self.elements_per_word} elements a word, as the source"
            raise refusal("Held vector", rule, self.auxiliary_form.name)

    def _check_statistics(self) -> None:
        if self.reduction is Reduction.NONE and self.result is ResultForm.NONE:
            raise BadInputError("Phase must send its results, keep them or change a statistic")
        if self.reduction in (Reduction.NONE, Reduction.KEEP_BOTH):
            if self.statistic:
                raise refusal("Statistic that nothing changes", "be 0", self.statistic)
        elif (
            self.reduction.changes
            and self.statistic in self.statistics
            and self.source is not PhaseSource.STATISTICS
        ):
            rule = "not be one that the phase reads, unless its source is STATISTICS"
            raise refusal("Changed statistic", rule, self.statistic)
        used = self.statistics or self.reduction.changes
        if used and self.form in _INT8:
            raise refusal("Form of a phase with statistics", "be WORD or BF16", self.form.name)
        if self.source is PhaseSource.STATISTICS and any(
            Operand.X in operands for operands in self.operands.values()
        ):
            raise refusal("Operand of a phase of STATISTICS", "not be of a stream", "X")

    @functools.cached_property
    def elements_per_word(self) -> int:
        """Elements in 32 bits of a vector of the source."""
        return 2 if self.source is PhaseSource.STATISTICS else self.form.per_word

    @property
    def takes_vectors_of(self) -> set[ElementForm]:
        """Forms of the source's vectors and of those beside them, element by element."""
        beside = self.auxiliary is AuxiliaryUse.VECTOR
        return {self.form, *((self.auxiliary_form,) if beside else ())}

    def of_lower_halves(self) -> LanePhase:
        """The phase that takes bf16 from the lower halves of such vectors."""
        lower = {ElementForm.BF16: ElementForm.BF16_LOWER}
        beside = lower if self.auxiliary is AuxiliaryUse.VECTOR else {}
        return dataclasses.replace(
            self,
            form=lower.get(self.form, self.form),
            auxiliary_form=beside.get(self.auxiliary_form, self.auxiliary_form),
        )

    @property
    def operands(self) -> dict[str, tuple[Operand, ...]]:
        """Operands of each unit that its result depends on, by the unit's name."""
        return {"fma": self.fma, "alu": self.alu_operands, "sfu": (self.argument,)}

    @property
    def statistics(self) -> set[int]:
        """Numbers of the statistics that the phase reads."""
        return {each.statistic for each in (self.y, self.z) if each.statistic is not None}

    @property
    def kept_words(self) -> set[int]:
        """Numbers of the kept words that the phase reads: word 0 is y, word 1 is z."""
        return {number for number, each in enumerate((self.y, self.z)) if each is Fetched.KEPT}

    def follows(self, before: LanePhase) -> bool:
        """Whether its elements may be issued while those of the phase before are in the lanes.

        That phase changes no statistic, and elements of both reach each unit at the same times.
        """
        return not before.reduction.changes and before.order.times == self.order.times

    def auxiliary_vectors(self, count: int, words: int) -> int:
        """Vectors of the auxiliary stream that are taken beside a packet of the source.

        Parameters
        ----------
        count : int
            Vectors of the packet.
        words : int
            Words of a vector, W/32.
        """
        elements = words * self.auxiliary_form.per_word
        match self.auxiliary:
            case AuxiliaryUse.NONE:
                return 0
            case AuxiliaryUse.HELD | AuxiliaryUse.LATCHED:
                return 1
            case AuxiliaryUse.VECTOR:
                return ceil_div(count * words * self.elements_per_word, elements)
            case AuxiliaryUse.SPREAD:
                return ceil_div(count, elements)
        return ceil_div(2 * count, elements)

    def pack(self, functions: tuple[LaneFunction, ...] = ()) -> int:
        """Word of the phase in a lane with these function units, laid out by `phase_layout`.

        Raises
        ------
        BadInputError
            The lane lacks the unit of the phase's function.
        """
        places = _places(len(functions))
        fields: dict[str, Any] = {name: getattr(self, name).value for name in _CODES}
        for name in ("form", "auxiliary_form"):
            fields[name] &= (1 << places[name][1]) - 1
        code = function_codes(functions).get(self.function)
        if code is None:
            rule = f"be one of {', '.join(each.name for each in functions) or 'none'}"
            raise refusal("Function unit of a phase", rule, self.function.name)
        fields["function"] = code
        fields |= {f"fma_{name}": each.value for name, each in zip("abc", self.fma, strict=True)}
        for name, each in zip("abcd", self.alu_operands, strict=True):
            fields[f"alu_{name}"] = each.value
        for name in ("negate_product", "negate_addend", "statistic"):
            fields[name] = int(getattr(self, name))
        return sum(value << places[name][0] for name, value in fields.items())

    @classmethod
    def unpack(cls, word: int, functions: tuple[LaneFunction, ...] = ()) -> LanePhase:
        """Phase of a word; the inverse of `pack`."""
        fields = {
            name: word >> offset & (1 << width) - 1
            for name, (offset, width) in _places(len(functions)).items()
        }
        known = tuple(function_codes(functions))
        if fields["function"] >= len(known):
            rule = f"be below {len(known)}"
            raise refusal("Code of function", rule, fields["function"])
        return cls(
            **{name: _coded(kind, fields, name) for name, kind in _CODES.items()},
            function=known[fields["function"]],
            fma=tuple(_coded(Operand, fields, f"fma_{name}") for name in "abc"),
            negate_product=bool(fields["negate_product"]),
            negate_addend=bool(fields["negate_addend"]),
            alu_operands=tuple(_coded(Operand, fields, f"alu_{name}") for name in "abcd"),
            statistic=int(fields["statistic"]),
        )


def mixes_halves(phases: Iterable[LanePhase]) -> bool:
    """Whether phases take bf16 both from whole vectors and from lower halves of them."""
    forms = {form for each in phases for form in each.takes_vectors_of}
    return forms >= {ElementForm.BF16, ElementForm.BF16_LOWER}


#: Fields of a phase that hold a code of an enumeration.
_CODES: dict[str, type[enum.Enum]] = {
    name: kind
    for name, kind in typing.get_type_hints(LanePhase).items()
    if isinstance(kind, type) and issubclass(kind, enum.Enum)
}


@functools.cache
def _places(function_units: int) -> dict[str, tuple[int, int]]:
    """Offset and width of each field of a phase's word."""
    layout = phase_layout(function_units)
    return {str(name): (field.offset, field.width) for name, field in layout}


def _coded(kind: type[enum.Enum], fields: Mapping[str, int], name: str) -> Any:
    """Member of an enumeration by the code in a field."""
    try:
        return kind(fields[name])
    except ValueError as error:
        raise refusal(f"Code of {name}", f"be one of {kind.__name__}", fields[name]) from error


def _check_types(phase: LanePhase) -> None:
    """Refuse fields of another type."""
    for name, kind in _CODES.items():
        value = getattr(phase, name)
        if not isinstance(value, kind):
            raise refusal(f"Phase {name}", f"be of {kind.__name__}", value)
    for name, count in (("fma", 3), ("alu_operands", 4)):
        operands = getattr(phase, name)
        fits = isinstance(operands, tuple) and len(operands) == count
        if not fits or not all(isinstance(each, Operand) for each in operands):
            raise refusal(f"Phase {name}", f"be {count} of Operand", operands)
    if not isinstance(phase.function, AnyFunction):
        raise refusal("Phase function", "be of SpecialFunction or LaneFunction", phase.function)
    require_bool("Phase negate_product", phase.negate_product)
    require_bool("Phase negate_addend", phase.negate_addend)
    require_int("Phase statistic", phase.statistic, 0, STATISTICS - 1)
