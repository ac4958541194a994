"""Pipelined fused multiply-add of fp32: one result per cycle, with one rounding."""

from __future__ import annotations

from typing import Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.float.align import align
from hw.float.aligned_sum import add, round_total
from hw.float.fp32 import PRODUCT_WINDOW, exact_product
from hw.float.wires import register
from hw.lib.component import Component
from hw.lib.delay import delayed

__all__ = ["FusedMultiplyAdd"]


class FusedMultiplyAdd(Component):
    """Fused multiply-add unit, ``±a * b ± c`` of fp32; it never stalls.

    Bit-identical to :func:`hw.numeric.alu.fused_multiply_add`. One result per cycle,
    `latency` cycles after its operands: product, alignment, addition and rounding take one each.

    Members
    -------
    i_a, i_b, i_c : ``In(32)``
        Operands.
    i_negate_product, i_negate_addend : ``In(1)``
        Whether ``a * b``, and ``c``, is taken with the opposite sign; with the operands.
    o_result : ``Out(32)``
    """

    #: Cycles from the operands to the result.
    latency: Final = 4

    i_a: Signal
    i_b: Signal
    i_c: Signal
    i_negate_product: Signal
    i_negate_addend: Signal
    o_result: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i_a": In(32),
                "i_b": In(32),
                "i_c": In(32),
                "i_negate_product": In(1),
                "i_negate_addend": In(1),
                "o_result": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product = exact_product(m, self.i_a, self.i_b)
        product = product._replace(sign=product.sign ^ self.i_negate_product)
        addend = Cat(self.i_c[:-1], self.i_c[-1] ^ self.i_negate_addend)
        terms = align(
            m,
            register(m, product, "product"),
            delayed(m, addend, 1, name="addend"),
            window=PRODUCT_WINDOW,
        )
        total = add(m, register(m, terms, "terms"), window=PRODUCT_WINDOW)
        result = round_total(m, register(m, total, "total"), window=PRODUCT_WINDOW)
        m.d.comb += self.o_result.eq(delayed(m, result, 1, name="result"))
        return m
