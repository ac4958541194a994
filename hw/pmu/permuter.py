"""Byte permuter between the lanes of a vector and the banks of the scratchpad."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.arch.words.pmu_word import bit_reverse
from hw.lib.component import Component

__all__ = ["Permuter", "reverse_top"]


def reverse_top(lane: int, *, rows_log2: int, bits: int) -> int:
    """Number of a byte lane with its top ``rows_log2`` bits reversed."""
    low = bits - rows_log2
    return bit_reverse(lane >> low, rows_log2) << low | lane & ((1 << low) - 1)


class Permuter(Component):
    """Byte permuter: a bit reversal of the lane number, then an XOR of it.

    Byte m of the output is byte ``P(m ^ i_xor)`` of the input, where P reverses the top
    ``i_rows_log2`` bits of a number. Combinational.

    Parameters
    ----------
    width_bits : int
        Bits of a vector.

    Members
    -------
    i_data : ``In(width_bits)``
    i_rows_log2 : ``In(range(log2(width_bits / 8) + 1))``
        Logarithm of the rows of the access: 0 to 2, or one of the three greatest values.
    i_xor : ``In(log2(width_bits / 8))``
    o_data : ``Out(width_bits)``
    """

    i_data: Signal
    i_rows_log2: Signal
    i_xor: Signal
    o_data: Signal

    def __init__(self, *, width_bits: int) -> None:
        self._width_bits = width_bits
        self._lane_bits = (width_bits // 8).bit_length() - 1
        super().__init__(
            {
                "i_data": In(width_bits),
                "i_rows_log2": In(range(self._lane_bits + 1)),
                "i_xor": In(self._lane_bits),
                "o_data": Out(width_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._lane_bits
        lanes = range(1 << bits)
        current = [self.i_data.word_select(lane, 8) for lane in lanes]
        # Reversing fewer than two bits is the identity; the greatest three are for columns.
        reversals = sorted({2, bits - 2, bits - 1, bits} - {0, 1})
        stage = Signal(8 << bits, name="reversed")
        m.d.comb += stage.eq(self.i_data)
        with m.Switch(self.i_rows_log2):
            for rows in reversals:
                with m.Case(rows):
                    m.d.comb += stage.eq(
                        Cat(current[reverse_top(x, rows_log2=rows, bits=bits)] for x in lanes)
                    )
        for bit in range(bits):
            before = [stage.word_select(lane, 8) for lane in lanes]
            stage = Signal(8 << bits, name=f"exchanged_{bit}")
            m.d.comb += stage.eq(
                Mux(self.i_xor[bit], Cat(before[x ^ 1 << bit] for x in lanes), Cat(before))
            )
        m.d.comb += self.o_data.eq(stage)
        return m
