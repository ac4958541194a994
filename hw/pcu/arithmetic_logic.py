"""Pipelined arithmetic logic unit (ALU) of a lane: one 32-bit word per cycle."""

from __future__ import annotations

from typing import Final, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.float.align import align
from hw.float.aligned_sum import add, round_total
from hw.float.convert import ceil, from_int32, to_int32
from hw.float.fp32 import as_product
from hw.float.recode import is_nan
from hw.float.wires import named, register
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.numeric.alu_codes import AluOperation
from hw.numeric.formats import fp32

__all__ = ["ArithmeticLogicUnit"]

_ADDITIONS = (AluOperation.ADD, AluOperation.SUBTRACT)


class _Order(NamedTuple):
    """Order of two words, by one comparator.

    Members
    -------
    below_int32, above : 1 bit
        Whether a < b of int32, and a > b of the magnitudes of fp32.
    same, zeros, nan, negative : 1 bit
        Whether the bits are equal; both are zeros; one is NaN; both are negative.
    """

    below_int32: Value
    above: Value
    same: Value
    zeros: Value
    nan: Value
    negative: Value


def _compare(m: Module, a: Value, b: Value) -> _Order:
    below = named(m, "magnitude_below", a[:-1] < b[:-1])
    same = named(m, "magnitude_same", a[:-1] == b[:-1])
    return _Order(
        below_int32=named(m, "below_int32", Mux(a[-1] ^ b[-1], a[-1], below)),
        above=named(m, "magnitude_above", ~below & ~same),
        same=same & ~(a[-1] ^ b[-1]),
        zeros=named(m, "both_zero", same & ~a[:-1].any()),
        nan=named(m, "either_nan", is_nan(a) | is_nan(b)),
        negative=a[-1] & b[-1],
    )


class ArithmeticLogicUnit(Component):
    """Arithmetic logic unit (ALU) of fp32 and int32 words; it never stalls.

    Bit-identical to :func:`hw.numeric.alu.alu`. One result per cycle, `latency` cycles
    after its operands.

    Parameters
    ----------
    operations : tuple of AluOperation
        Operations that it has, all by default; the result of another one is undefined.

    Members
    -------
    i_operation : ``In(AluOperation)``
        Operation, with the operands.
    i_a, i_b, i_c, i_d : ``In(32)``
        Operands.
    o_result : ``Out(32)``
    """

    #: Cycles from the operands to the result.
    latency: Final = 3

    i_operation: Signal
    i_a: Signal
    i_b: Signal
    i_c: Signal
    i_d: Signal
    o_result: Signal

    def __init__(self, operations: tuple[AluOperation, ...] = tuple(AluOperation)) -> None:
        self._operations = operations
        words = {f"i_{name}": In(32) for name in "abcd"}
        super().__init__({"i_operation": In(AluOperation), **words, "o_result": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        operation, a, b = self.i_operation, self.i_a, self.i_b
        addend = named(m, "addend", b ^ ((operation == AluOperation.SUBTRACT) << 31))
        terms = register(m, align(m, as_product(m, a), addend), "terms")
        total = round_total(m, register(m, add(m, terms), "total"))

        word = Signal(32)
        with m.Switch(operation):
            for case, value in self._words(m).items():
                if case in self._operations:
                    with m.Case(case):
                        m.d.comb += word.eq(value)
        adds = (operation == _ADDITIONS[0]) | (operation == _ADDITIONS[1])
        late_word = delayed(m, word, 2, name="late_word")
        late_adds = delayed(m, adds, 2, name="late_adds")
        result = Mux(late_adds, total, late_word)
        m.d.comb += self.o_result.eq(delayed(m, result, 1, name="result"))
        return m

    def _words(self, m: Module) -> dict[AluOperation, Value]:
        """Result of every operation but additions of fp32, combinational."""
        a, b, c, d = self.i_a, self.i_b, self.i_c, self.i_d
        order = _compare(m, a, b)
        chosen = named(m, "chosen", Mux(self._condition(order), c, d))
        # The order of two fp32 that are not NaN, except for zeros, of which -0 comes first.
        first_is_a = named(m, "first_is_a", Mux(order.negative, order.above, order.below_int32))
        swap = named(m, "swap", self.i_operation == AluOperation.MAXIMUM)
        extreme = Mux(order.nan, fp32.canonical_nan, Mux(first_is_a ^ swap, a, b))
        # One shifter, to the right; words pass it in reverse order for shifts to the left.
        left = named(m, "shifts_left", self.i_operation == AluOperation.SHIFT_LEFT)
        filled = named(m, "shifted_in", a[-1] & ~left)
        moved: Value = named(m, "unshifted", Mux(left, a[::-1], a))
        for stage in range(5):
            places = 1 << stage
            shifted = Cat(moved[places:], filled.replicate(places))
            moved = named(m, f"shifted_by_{places}", Mux(b[stage], shifted, moved))
        return {
            AluOperation.MINIMUM: extreme,
            AluOperation.MAXIMUM: extreme,
            AluOperation.SELECT_LESS: chosen,
            AluOperation.SELECT_EQUAL: chosen,
            AluOperation.SELECT_LESS_INT32: chosen,
            AluOperation.CEIL: ceil(m, a),
            AluOperation.TO_INT32: to_int32(m, a),
            AluOperation.FROM_INT32: from_int32(m, a),
            AluOperation.ADD_INT32: (a + b)[:32],
            AluOperation.AND: a & b,
            AluOperation.OR: a | b,
            AluOperation.XOR: a ^ b,
            AluOperation.SHIFT_LEFT: moved[::-1],
            AluOperation.SHIFT_RIGHT: moved,
        }

    def _condition(self, order: _Order) -> Value:
        """Condition of a selection."""
        less = Mux(order.negative, order.above, order.below_int32) & ~order.zeros & ~order.nan
        equal = (order.same | order.zeros) & ~order.nan
        integer = self.i_operation == AluOperation.SELECT_LESS_INT32
        by_value = Mux(self.i_operation == AluOperation.SELECT_EQUAL, equal, less)
        return Mux(integer, order.below_int32, by_value)
