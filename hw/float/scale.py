"""Scaling of a microscaled (OCP MX) product sum by the scales of both operands, exact."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Value

from hw.float.dot1 import Product
from hw.float.wires import named
from hw.numeric.formats import SCALE_BITS

__all__ = ["scale_product"]

_BIAS = (1 << SCALE_BITS - 1) - 1


def scale_product(m: Module, product: Product, left: Value, right: Value) -> Product:
    """Product multiplied by two e8m0 scales, exactly.

    Combinational. The exponent of any product of 8-bit operands and two scales fits the 10 bits of
    :class:`hw.float.dot1.Product`, where adding 512 inverts the sign bit.

    Parameters
    ----------
    m : Module
        Takes the statements.
    product : Product
        Of operands of 8 or 4 bits.
    left, right : Value of 8 bits
        2^(code - 127), or NaN if all bits are 1.
    """
    nan = named(m, "scale_nan", left.all() | right.all())
    exponent = (product.exponent + left + right - 2 * _BIAS)[: len(product.exponent)]
    return product._replace(
        # The exponent code of zero stays below all others.
        exponent=named(m, "scaled_exponent", Mux(product.zero, 0, exponent)),
        special=named(m, "scaled_special", product.special | nan),
        nan=named(m, "scaled_nan", product.nan | nan),
    )
