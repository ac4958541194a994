"""Scaling of an old sum by a power of two before it enters a tile."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component
from hw.numeric.formats import fp32

__all__ = ["Rescale"]


class Rescale(Component):
    """fp32 sum times 2^-rise, by its exponent; without registers.

    A rise of 0 changes no bit. Else results below 2^-126 are +0; infinities and NaN stay.
    Bit-identical to :func:`hw.numeric.fused_softmax.rescaled`.

    Members
    -------
    i_sum, o_sum : ``In(32)``, ``Out(32)``
    i_rise : ``In(8)``
    """

    i_sum: Signal
    i_rise: Signal
    o_sum: Signal

    def __init__(self) -> None:
        super().__init__({"i_sum": In(32), "i_rise": In(8), "o_sum": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fraction = fp32.fraction_bits
        field = self.i_sum[fraction:31]
        moved = Signal(9)
        special, still = field.all(), ~self.i_rise.any()
        # The field after the move is 0 or below if it is not above the rise.
        flushed = moved[8] | ~moved[:8].any()
        m.d.comb += [moved.eq(field - self.i_rise), self.o_sum.eq(self.i_sum)]
        with m.If(~special & ~still):
            with m.If(flushed):
                m.d.comb += self.o_sum.eq(Const(0))
            with m.Else():
                m.d.comb += self.o_sum.eq(
                    Cat(self.i_sum[:fraction], moved[:8], self.i_sum[31]),
                )
        return m
