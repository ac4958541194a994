"""Element operations of the IR as unit operations of a lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hw.arch.lanes.lane_function import AnyFunction
from hw.numeric.alu_codes import AluOperation
from hw.numeric.compositions import SEQUENCES
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction
from sw.lane_codes.lane_words import (
    MINUS_ZERO,
    ONE,
    ZERO,
    Place,
    UnitOperation,
    Word,
    WordTable,
    float_bits,
)

__all__ = ["Arithmetic", "Condition"]

_ABSOLUTE, _SIGN = 0x7FFFFFFF, 0x80000000
_ALL = 0xFFFFFFFF


class Condition(NamedTuple):
    """A comparison, which is not computed until something is selected by it."""

    op: str
    a: Word
    b: Word
    integer: bool


class Arithmetic:
    """Operations on words, entered into a table; those of `UnitFunctions` and integers.

    Parameters
    ----------
    table : WordTable
    """

    def __init__(self, table: WordTable) -> None:
        self._table = table
        #: Operations on fp32 that are no sequences, and those on int32, by name.
        self._reals: dict[str, Callable[..., Word | None]] = {
            "add": self.add,
            "sub": self.subtract,
            "mul": self.multiply,
            "neg": self.negate,
            "abs": self._absolute,
            "max": lambda a, b: self._alu(AluOperation.MAXIMUM, a, b),
            "min": lambda a, b: self._alu(AluOperation.MINIMUM, a, b),
            "fma": self._near_fma,
            "exp": self.exp,
            "exp2": self.exp2,
            "bits": self.bits,
            "rsqrt": self.rsqrt,
            "reciprocal": self.reciprocal,
        }
        self._integers: dict[str, Callable[..., Word | None]] = {
            "add": self._sum,
            "sub": self._difference,
            "mul": self._shifted,
            "neg": self._minus,
            "abs": lambda a: self._chosen_less(a, ZERO, self._minus(a), a),
            "max": lambda a, b: self._chosen_less(a, b, b, a),
            "min": lambda a, b: self._chosen_less(a, b, a, b),
        }

    def computes(self, op: str, integer: bool) -> bool:
        """Whether lanes have an element operation, on int32 or on fp32."""
        return op in self._integers if integer else op in SEQUENCES or op in self._reals

    def apply(self, op: str, words: tuple[Word, ...], integer: bool) -> Word | None:
        """Result of an element operation that lanes have: no comparison, nor ``where``.

        Returns
        -------
        Word or None
            None if no unit can take the operands.
        """
        if not integer and op in SEQUENCES:
            result: Word = SEQUENCES[op](self, *words)
            return result
        return (self._integers if integer else self._reals)[op](*words)

    def function(self, function: AnyFunction, a: Word) -> Word:
        """Function of the special function unit, or of a unit of a user."""
        return self._table.make(UnitOperation("sfu", (a,), function))

    def negate(self, a: Any) -> Word:
        a = _word(a)
        minus = UnitOperation("alu", (MINUS_ZERO, a, ZERO, ZERO), AluOperation.SUBTRACT)
        return self._table.make(minus, *_fma(a, ONE, MINUS_ZERO, negate_product=True))

    def add(self, a: Any, b: Any) -> Word:
        a, b = self._table.near(_word(a), _word(b))
        operation = UnitOperation("alu", (a, b, ZERO, ZERO), AluOperation.ADD)
        return self._table.make(operation, *(_fma(a, ONE, b) or _fma(b, ONE, a)))

    def subtract(self, a: Word, b: Word) -> Word:
        a, b = self._table.near(a, b)
        operation = UnitOperation("alu", (a, b, ZERO, ZERO), AluOperation.SUBTRACT)
        also = _fma(a, ONE, b, negate_addend=True) or _fma(b, ONE, a, negate_product=True)
        return self._table.make(operation, *also)

    def multiply(self, a: Any, b: Any) -> Word:
        a, b = self._table.near(_word(a), _word(b))
        return self.fma(a, b, np.float32(-0.0))

    def fma(self, a: Any, b: Any, c: Any) -> Word:
        first, second, addend = (_word(each) for each in (a, b, c))
        if isinstance(first, int):
            first, second = second, first
        if isinstance(first, int) and isinstance(addend, str):
            # The unit takes no constant as its first operand.
            first = self._table.passed(first, Place.LANE)
        return self._table.make(UnitOperation("fma", (first, second, addend)))

    def _near_fma(self, a: Word, b: Word, c: Word) -> Word | None:
        """The FMA on words of any kind, or None if no phase can fetch them."""
        operands = self._table.near(a, b, c)
        constant = isinstance(a, int) and isinstance(b, int) and not isinstance(c, int)
        return None if constant or not self._table.fits(operands) else self.fma(*operands)

    def exp(self, a: Any) -> Word:
        return self.function(SpecialFunction.EXP, _word(a))

    def exp2(self, a: Any) -> Word:
        return self.function(SpecialFunction.EXP2, _word(a))

    def bits(self, a: Any) -> Word:
        """The word itself as an int32, converted."""
        return self.widened(_word(a))

    def reciprocal(self, a: Any) -> Word:
        return self.function(SpecialFunction.RECIPROCAL, _word(a))

    def rsqrt(self, a: Any) -> Word:
        return self.function(SpecialFunction.RSQRT, _word(a))

    def select_equal(self, a: Any, b: Any, c: Any, d: Any) -> Word:
        return self._select(AluOperation.SELECT_EQUAL, *map(_word, (a, b, c, d)), integer=False)

    def select_less(self, a: Any, b: Any, c: Any, d: Any) -> Word:
        return self._select(AluOperation.SELECT_LESS, *map(_word, (a, b, c, d)), integer=False)

    def canonical(self, a: Word) -> Word:
        """An fp32 with the canonical NaN for every NaN."""
        if not self._has_payload(a):
            return a
        also = UnitOperation("alu", (a, MINUS_ZERO, ZERO, ZERO), AluOperation.ADD)
        return self._table.make(also, *_fma(a, ONE, MINUS_ZERO))

    def chosen(self, condition: Condition, x: Word, y: Word, integer: bool) -> Word:
        """X where a condition holds, else y; the latter are fp32 or int32."""
        op, a, b, _ = condition
        if op in ("gt", "ge"):
            op, a, b = {"gt": "lt", "ge": "le"}[op], b, a
        if op == "ne":
            op, x, y = "eq", y, x
        pick = self._integer_choice if condition.integer else self._float_choice
        result = pick(op, a, b, x, y, integer)
        return result if integer else self.canonical(result)

    def widened(self, a: Word) -> Word:
        """An int32 as fp32."""
        return self._alu(AluOperation.FROM_INT32, a)

    def counted(self, a: Word) -> Word:
        """An int32 that equals a number of vectors as fp32 where it does as int32.

        Small numbers from 0 on do, as subnormal ones. A negative int32 becomes NaN: one is −0.
        """
        less = AluOperation.SELECT_LESS_INT32
        return self._select(less, a, ZERO, fp32.canonical_nan, a, integer=True)

    def rounded(self, a: Word) -> Word:
        """An fp32 as int32."""
        return self._alu(AluOperation.TO_INT32, a, integer=True)

    def _integer_choice(self, op: str, a: Word, b: Word, x: Word, y: Word, integer: bool) -> Word:
        less = AluOperation.SELECT_LESS_INT32
        if op == "lt":
            return self._select(less, a, b, x, y, integer=integer)
        if op == "le":
            return self._select(less, b, a, y, x, integer=integer)
        greater = self._select(less, b, a, y, x, integer=integer)
        return self._select(less, a, b, y, greater, integer=integer)

    def _float_choice(self, op: str, a: Word, b: Word, x: Word, y: Word, integer: bool) -> Word:
        less, equal = AluOperation.SELECT_LESS, AluOperation.SELECT_EQUAL
        if op == "le":
            # a <= b is a < b if one of them is replaced by its neighbour.
            if isinstance(b, int) and _finite(b):
                return self._select(less, a, _neighbour(b, np.inf), x, y, integer=integer)
            if isinstance(a, int) and _finite(a):
                return self._select(less, _neighbour(a, -np.inf), b, x, y, integer=integer)
            # It is also a maximum that is b, which is NaN if either is.
            a = self._alu(AluOperation.MAXIMUM, a, b)
        return self._select(less if op == "lt" else equal, a, b, x, y, integer=integer)

    def _select(
        self, code: AluOperation, a: Word, b: Word, x: Word, y: Word, *, integer: bool
    ) -> Word:
        """X or y by a comparison, over several results if a phase cannot fetch all operands."""
        operands = self._table.near(a, b, x, y)
        if self._table.fits(operands):
            return self._chosen(code, operands, integer)
        if isinstance(a, str) and isinstance(b, str) and a != b:
            a, b = self._chosen(code, (*self._table.near(a, b), ONE, ZERO), False), ONE
            code = AluOperation.SELECT_EQUAL
            return self._select(code, a, b, x, y, integer=integer)
        one = self._chosen(code, (*self._table.near(a, b, x), ZERO), True)
        a, b, y = self._table.near(a, b, y)
        other = self._chosen(code, (a, b, ZERO, y), True)
        return self._alu(AluOperation.OR, one, other, integer=integer, raw=(x, y))

    def _chosen(self, code: AluOperation, operands: tuple[Word, ...], integer: bool) -> Word:
        result = self._table.make(UnitOperation("alu", operands, code), integer=integer)
        self._mark(result, operands[2:])
        return result

    def _mark(self, result: Word, operands: tuple[Word, ...]) -> None:
        """Note that a result may be one of the operands, with its NaN."""
        if isinstance(result, str) and any(map(self._has_payload, operands)):
            self._table.payloads.add(result)

    def _has_payload(self, a: Word) -> bool:
        """Whether a word may be another NaN than the canonical one."""
        if isinstance(a, str):
            return a in self._table.payloads
        return a & _ABSOLUTE > fp32.infinity and a != fp32.canonical_nan

    def _absolute(self, a: Word) -> Word:
        if not self._has_payload(a):
            masked = UnitOperation("alu", (a, _ABSOLUTE, ZERO, ZERO), AluOperation.AND)
            return self._table.make(masked)
        return self._alu(AluOperation.MAXIMUM, a, self.negate(a))

    def _alu(
        self,
        code: AluOperation,
        a: Word,
        b: Word = ZERO,
        *,
        integer: bool = False,
        raw: tuple[Word, ...] = (),
    ) -> Word:
        operands = (*self._table.near(a, b), ZERO, ZERO)
        result = self._table.make(UnitOperation("alu", operands, code), integer=integer)
        self._mark(result, raw)
        return result

    def _sum(self, a: Word, b: Word) -> Word:
        return self._alu(AluOperation.ADD_INT32, a, b, integer=True)

    def _difference(self, a: Word, b: Word) -> Word:
        if isinstance(b, int):
            return self._sum(a, -b & _ALL)
        # a - b is the complement of (complement of a) + b.
        return self._complement(self._sum(self._complement(a), b))

    def _minus(self, a: Word) -> Word:
        return self._complement(self._sum(a, _ALL))

    def _complement(self, a: Word) -> Word:
        return self._alu(AluOperation.XOR, a, _ALL, integer=True)

    def _chosen_less(self, a: Word, b: Word, x: Word, y: Word) -> Word:
        return self._select(AluOperation.SELECT_LESS_INT32, a, b, x, y, integer=True)

    def _shifted(self, a: Word, b: Word) -> Word | None:
        """Product with a power of two."""
        if isinstance(a, int):
            a, b = b, a
        if not isinstance(b, int) or b.bit_count() != 1:
            return None
        return self._alu(AluOperation.SHIFT_LEFT, a, b.bit_length() - 1, integer=True)


def _word(operand: Any) -> Word:
    """A word as it is, or the bits of an fp32."""
    return operand if isinstance(operand, str | int) else float_bits(operand)


def _fma(
    a: Word, b: Word, c: Word, *, negate_product: bool = False, negate_addend: bool = False
) -> tuple[UnitOperation, ...]:
    """The FMA on words, or nothing where a is a constant, which it does not take."""
    if isinstance(a, int):
        return ()
    return (UnitOperation("fma", (a, b, c), None, negate_product, negate_addend),)


def _finite(bits: int) -> bool:
    return bits & _ABSOLUTE < fp32.infinity


def _neighbour(bits: int, towards: float) -> int:
    """The next fp32 in a direction; that of either zero is subnormal."""
    value = fp32.from_bits(np.array([bits], np.uint32))
    with np.errstate(over="ignore", under="ignore"):
        return float_bits(np.nextafter(value, np.float32(towards))[0])
