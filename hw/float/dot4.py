"""Exact dot product of four pairs of 4-bit operands, as one addend of a cell's partial sum."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Value

from hw.float.carry_save import Columns, sum_columns
from hw.float.dot1 import PRODUCT_EXPONENT_BITS, Product
from hw.float.wires import named
from hw.numeric.formats import LANE_BITS, e2m1, fp32, int4

__all__ = ["multiply_e2m1_quad", "multiply_int4_quad"]

_BITS = int4.bits
_FIELDS = [slice(low, low + _BITS) for low in range(0, LANE_BITS, _BITS)]

#: Magnitudes of e2m1 by their bits, in halves.
_HALVES = [int(2 * value) for value in e2m1.from_bits(range(e2m1.largest + 1)).astype(float)]
_LARGEST_PRODUCT = max(_HALVES) ** 2
_PRODUCT_BITS = _LARGEST_PRODUCT.bit_length()
_SUM_BITS = (len(_FIELDS) * _LARGEST_PRODUCT).bit_length()

#: Shifter stages that normalise every nonzero sum.
_NORMALISE = (4, 2, 2)


def multiply_int4_quad(m: Module, a: Value, w: Value) -> Value:
    """Sum of the products of four pairs of int4.

    Combinational. Partial products of negative weight are inverted (Baugh and Wooley), which adds
    an excess of 2^7 - 2^4 to each product; Booth recoding does not pay at this width.

    Returns
    -------
    Value of 10 bits, two's complement
    """
    columns: Columns = [[] for _ in range(2 * _BITS + 2)]
    top = _BITS - 1
    for lane in _FIELDS:
        for i, x in enumerate(a[lane]):
            for j, y in enumerate(w[lane]):
                columns[i + j].append(~(x & y) if (i == top) != (j == top) else x & y)
    return sum_columns(m, columns, len(_FIELDS) * ((1 << _BITS) - (1 << 2 * _BITS - 1)))


def _e2m1_product(a: Value, w: Value) -> Value:
    """Product of two magnitudes in quarters: each of its bits is a function of six."""
    products = [x * y for y in _HALVES for x in _HALVES]
    rows = [
        sum((product >> bit & 1) << index for index, product in enumerate(products))
        for bit in range(_PRODUCT_BITS)
    ]
    return Cat((Const(row, len(products)) >> Cat(a, w))[0] for row in rows)


def multiply_e2m1_quad(m: Module, a: Value, w: Value) -> Product:
    """Exact sum of the products of four pairs of e2m1.

    Combinational. The sum is a whole number of quarters, at most 576, in fixed point; a zero sum is
    +0, whatever the signs of its terms. It is normalised here, which costs less than a window
    that tolerates leading zeros (:mod:`hw.float.align`).

    Parameters
    ----------
    m : Module
        Takes the statements.
    a, w : Value of 16 bits
        Four operands each, the lowest k low.
    """
    columns: Columns = [[] for _ in range(_SUM_BITS + 1)]
    for index, lane in enumerate(_FIELDS):
        x, y = a[lane], w[lane]
        sign = named(m, f"sign_{index}", x[-1] ^ y[-1])
        product = named(m, f"product_{index}", _e2m1_product(x[:-1], y[:-1]))
        # Two's complement with the sign bit inverted, which adds an excess of 2^8.
        for weight, bit in enumerate(product ^ sign.replicate(_PRODUCT_BITS)):
            columns[weight].append(bit)
        columns[0].append(sign)
        columns[_PRODUCT_BITS].append(~sign)
    total = named(m, "quad_total", sum_columns(m, columns, -len(_FIELDS) << _PRODUCT_BITS))
    negative = total[-1]
    magnitude: Value = ((total ^ negative.replicate(len(total))) + negative)[:_SUM_BITS]
    magnitude = named(m, "quad_magnitude", magnitude)
    zero = named(m, "quad_zero", ~magnitude.any())
    # Bit 2 of a sum in quarters weighs 1, so it has the exponent of 1.
    exponent: Value = Const(fp32.bias + _SUM_BITS - 1 - 2, fp32.exponent_bits)
    for stage, places in enumerate(_NORMALISE):
        taken = named(m, f"quad_shift_{stage}", ~magnitude[-places:].any())
        shifted = Mux(taken, Cat(Const(0, places), magnitude[:-places]), magnitude)
        magnitude = named(m, f"quad_shifted_{stage}", shifted)
        exponent = (exponent - Mux(taken, places, 0))[: fp32.exponent_bits]
    above = PRODUCT_EXPONENT_BITS - fp32.exponent_bits - 1
    never = Const(0, 1)
    return Product(
        significand=magnitude,
        sign=negative,
        # The exponent of a zero product is below every other, as in `Coding.product_exponent`.
        exponent=named(m, "quad_exponent", Cat(exponent, Const(0, above), ~zero)),
        zero=zero,
        special=never,
        nan=never,
    )
