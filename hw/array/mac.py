"""Multiply-add datapath of a cell: exact products added to a partial sum, for every dataflow."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value

from hw.array.cell_config import CellConfig
from hw.float.align import Window, align
from hw.float.aligned_sum import add, round_total
from hw.float.dot1 import Product, multiply, multiply_pair
from hw.float.dot2 import multiply_float_pair
from hw.float.dot4 import multiply_e2m1_quad, multiply_int4_quad
from hw.float.scale import scale_product
from hw.float.short_add import add_short
from hw.float.wires import register
from hw.numeric.formats import SCALE_BITS

__all__ = ["add_product", "multiply_add"]


def multiply_add(
    m: Module, config: CellConfig, a: Value, b: Value, old: Value, *, mode: Value | None
) -> Value:
    """Sum of two operands' products and ``old``, before a cell's last register.

    The product has one register stage and the adder ``latency - 1``: ``old`` belongs to the
    operands of the cycle before.

    Parameters
    ----------
    m : Module
    config : CellConfig
    a, b : Value
        Recoded operands.
    old : Value
    mode : Value or None
        Selects int8, in a cell that has the mode input.
    """
    integer = mode if config.has_mode else None
    if config.formats[0].is_float and config.coding is None:
        product = multiply_e2m1_quad(m, a, b)
    elif config.coding is None:
        return _integer(m, config, a, b, old)
    elif config.has_float_pairs:
        product = multiply_float_pair(m, a, b, formats=config.formats)
    else:
        hard = config.has_hard_multipliers
        product = multiply(m, a, b, integer=integer, coding=config.coding, hard=hard)
    if config.has_scale:
        product = scale_product(m, product, a[-SCALE_BITS:], b[-SCALE_BITS:])
    product = register(m, product, "factor")
    return add_product(m, product, old, latency=config.latency, integer=integer)


def add_product(
    m: Module, product: Product, old: Value, *, latency: int, integer: Value | None = None
) -> Value:
    """Sum of a product and ``old``, registered ``latency - 1`` times."""
    window = Window.of(len(product.significand))
    terms = align(m, product, old, integer=integer, window=window)
    if latency >= 3:
        terms = register(m, terms, "term")
    total = add(m, terms, integer=integer, window=window)
    if latency >= 2:
        total = register(m, total, "sum")
    return round_total(m, total, integer=integer, window=window)


def _integer(m: Module, config: CellConfig, a: Value, b: Value, old: Value) -> Value:
    """Sum of integer products; register stages beyond the first are left to synthesis to retime."""
    if config.formats[0].bits == 4:
        exact = multiply_int4_quad(m, a, b)
    else:
        exact = multiply_pair(m, a, b, hard=config.has_hard_multipliers)
    product = Signal(len(exact), reset_less=True)
    m.d.sync += product.eq(exact)
    total = add_short(m, old, product)
    for stage in range(1, config.latency):
        delayed = Signal(32, name=f"sum_{stage}", reset_less=True)
        m.d.sync += delayed.eq(total)
        total = delayed
    return total
