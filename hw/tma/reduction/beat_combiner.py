"""Combiner of beats: each element in memory with one to be stored."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hw.arch.boxes.reductions import ReductionOperation
from hw.arch.descriptor import ElementFormat
from hw.lib.component import Component
from hw.tma.reduction.reduction_fields import reduction_layout

__all__ = ["BeatCombiner"]

_WORD_BYTES = 4


class BeatCombiner(Component):
    """Combiner of beats: element by element, the one in memory with the one to be stored.

    Combinational. Each word of 32 bits has one adder of four bytes, whose carries end where an
    element does; a comparison is a subtraction.

    Parameters
    ----------
    width_bits : int
        Width of a beat, a multiple of 32.

    Members
    -------
    i_reduction : ``reduction_layout``
        An operation on a format of `INTEGER_FORMATS`.
    i_memory, i_stored
        The two beats.
    o_combined
    """

    i_reduction: Any
    i_memory: Signal
    i_stored: Signal
    o_combined: Signal

    def __init__(self, *, width_bits: int) -> None:
        self._width_bits = width_bits
        super().__init__(
            {
                "i_reduction": In(reduction_layout),
                "i_memory": In(width_bits),
                "i_stored": In(width_bits),
                "o_combined": Out(width_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift = self.i_reduction.format[:2]
        # Whether byte n of a word is the first, and the last, of an element.
        first, last = Signal(_WORD_BYTES), Signal(_WORD_BYTES)
        compares = Signal()
        flips = Signal()  # the sign of both, so that they compare as unsigned numbers
        operation = self.i_reduction.request.operation
        smallest, greatest = ReductionOperation.MIN.value, ReductionOperation.MAX.value
        m.d.comb += [
            first.eq(Cat(1, shift == 0, shift != 2, shift == 0)),
            last.eq(Cat(shift == 0, shift != 2, shift == 0, 1)),
            compares.eq((operation == smallest) | (operation == greatest)),
            flips.eq(compares & (self.i_reduction.format != ElementFormat.UINT8.value)),
        ]
        memory, stored = self.i_memory, self.i_stored
        sums, no_less = [], []
        for start in range(0, self._width_bits, 8 * _WORD_BYTES):
            carry: Value = compares
            carries = []
            for index in range(_WORD_BYTES):
                at = start // 8 + index
                sign = (flips & last[index]) << 7
                one = memory.word_select(at, 8) ^ sign
                other = stored.word_select(at, 8) ^ sign ^ compares.replicate(8)
                total = Signal(9, name=f"total{at}")
                m.d.comb += total.eq(one + other + Mux(first[index], compares, carry))
                carry = total[8]
                carries.append(carry)
                sums.append(total[:8])
            for index in range(_WORD_BYTES):
                half = Mux(shift == 1, carries[index | 1], carries[-1])
                no_less.append(Mux(shift == 0, carries[index], half))
        takes_stored = Cat(bit ^ (operation == greatest) for bit in no_less)
        for index in range(self._width_bits // 8):
            one, other = memory.word_select(index, 8), stored.word_select(index, 8)
            combined = self.o_combined.word_select(index, 8)
            with m.Switch(operation):
                with m.Case(ReductionOperation.ADD.value):
                    m.d.comb += combined.eq(sums[index])
                with m.Case(ReductionOperation.AND.value):
                    m.d.comb += combined.eq(one & other)
                with m.Case(ReductionOperation.OR.value):
                    m.d.comb += combined.eq(one | other)
                with m.Case(ReductionOperation.XOR.value):
                    m.d.comb += combined.eq(one ^ other)
                with m.Default():
                    m.d.comb += combined.eq(Mux(takes_stored[index], other, one))
        return m
