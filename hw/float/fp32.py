"""Arithmetic of fp32, combinational, bit-identical to :mod:`hw.numeric.elementwise`."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Value

from hw.float.align import EXPONENT_BITS, FRACTION, Window, align
from hw.float.aligned_sum import Total, add, round_total
from hw.float.dot1 import PRODUCT_EXPONENT_BITS, Product, multiply
from hw.float.recode import Coding, is_nan, recode
from hw.float.sticky_shift import shift_right
from hw.float.wires import named
from hw.numeric.formats import fp32

__all__ = [
    "PRODUCT_WINDOW",
    "add_fp32",
    "as_product",
    "equal",
    "exact_product",
    "fma_fp32",
    "less",
    "maximum",
    "minimum",
    "multiply_fp32",
]

_CODING = Coding.of((fp32,))
#: Window of the product of two normalised fp32.
_WINDOW = Window.of(2 * fp32.significand_bits)

#: Alignment window of the product of two fp32, of which one may be subnormal: a bit more than for
#: normal ones, since the product then begins as low as 2^-24.
PRODUCT_WINDOW = Window.of(2 * fp32.significand_bits + 1)


def as_product(m: Module, a: Value) -> Product:
    """An fp32 in the form of a product, as one term of an addition."""
    field, fraction = a[FRACTION:-1], a[:FRACTION]
    normal = named(m, "term_normal", field.any())
    special = field.all()
    return Product(
        significand=Cat(fraction, normal),
        sign=a[-1],
        exponent=Cat(field[0] | ~normal, field[1:], Const(0b10, 2)),
        zero=Const(0, 1),
        special=special,
        nan=special & fraction.any(),
    )


def add_fp32(m: Module, a: Value, b: Value) -> Value:
    """``a + b``."""
    return round_total(m, add(m, align(m, as_product(m, a), b)))


def exact_product(m: Module, a: Value, b: Value) -> Product:
    """Exact product of two fp32, as one term of an addition in `PRODUCT_WINDOW`.

    Subnormal factors are not normalised: beside a normal one the product begins at 2^-24 or above,
    which the window takes, and two of them give less than any bit of the window.
    """
    fields = [x[FRACTION:-1] for x in (a, b)]
    normal = [named(m, f"factor_{i}_normal", field.any()) for i, field in enumerate(fields)]
    special = [named(m, f"factor_{i}_special", field.all()) for i, field in enumerate(fields)]
    zero = [~(x[:FRACTION].any() | hidden) for x, hidden in zip((a, b), normal, strict=True)]
    nan = [each & x[:FRACTION].any() for x, each in zip((a, b), special, strict=True)]
    significands = [Cat(x[:FRACTION], hidden) for x, hidden in zip((a, b), normal, strict=True)]
    # A subnormal has the exponent of the smallest normal.
    exponents = [Cat(f[0] | ~hidden, f[1:]) for f, hidden in zip(fields, normal, strict=True)]
    # As one in [0.5, 2), the product has one more, and the form of a product adds 512.
    total = exponents[0] + exponents[1] + (512 + 1 - fp32.bias)
    is_zero = named(m, "product_zero", zero[0] | zero[1])
    return Product(
        significand=named(m, "product_significand", significands[0] * significands[1]),
        sign=a[-1] ^ b[-1],
        exponent=Mux(is_zero, 0, total)[:PRODUCT_EXPONENT_BITS],
        zero=is_zero,
        special=special[0] | special[1],
        nan=nan[0] | nan[1] | (special[0] & zero[1]) | (special[1] & zero[0]),
    )


def fma_fp32(m: Module, a: Value, b: Value, c: Value) -> Value:
    """Fused multiply-add: ``a * b + c`` with one rounding."""
    terms = align(m, exact_product(m, a, b), c, window=PRODUCT_WINDOW)
    return round_total(m, add(m, terms, window=PRODUCT_WINDOW), window=PRODUCT_WINDOW)


def multiply_fp32(m: Module, a: Value, b: Value) -> Value:
    """``a * b``."""
    left, right = (recode(m, x, fp32, _CODING) for x in (a, b))
    product = multiply(m, left, right, coding=_CODING)
    # The product's exponent carries an offset of 512; below 1 the result is subnormal and shifts.
    exponent = named(m, "true_exponent", (product.exponent - 512)[: EXPONENT_BITS + 2])
    short = named(m, "short", (1 - exponent.as_signed())[: EXPONENT_BITS + 2])
    subnormal = named(m, "is_subnormal", ~short[-1])
    down = Mux(subnormal, short[:-1], 0)
    placed = Cat(Const(0, 1), Mux(product.zero, 0, product.significand))
    moved, lost = shift_right(m, placed, down, "denormalise")
    total = Total(
        magnitude=Cat(moved, Const(0, 1)),
        fill=Const(0, 1),
        exponent=Mux(subnormal, 1, exponent[:EXPONENT_BITS])[:EXPONENT_BITS],
        subtract=Const(0, 1),
        sticky=lost,
        sign=product.sign & ~product.nan,
        special=product.special,
        nan=product.nan,
    )
    return round_total(m, total, window=_WINDOW)


def _below(a: Value, b: Value) -> Value:
    """Whether a comes before b in the total order in which -0 precedes +0; no NaN."""
    smaller = a[:-1] < b[:-1]
    greater = a[:-1] > b[:-1]
    return Mux(a[-1], Mux(b[-1], greater, 1), ~b[-1] & smaller)


def less(m: Module, a: Value, b: Value) -> Value:
    """``a < b``: 0 if either is NaN; -0 and +0 are equal."""
    zeros = ~(a[:-1].any() | b[:-1].any())
    return _below(a, b) & ~zeros & ~is_nan(a) & ~is_nan(b)


def equal(m: Module, a: Value, b: Value) -> Value:
    """``a = b``: 0 if either is NaN; -0 and +0 are equal."""
    zeros = ~(a[:-1].any() | b[:-1].any())
    return ((a == b) | zeros) & ~is_nan(a) & ~is_nan(b)


def _choose(a: Value, b: Value, first: Value) -> Value:
    nan = is_nan(a) | is_nan(b)
    return Mux(nan, fp32.canonical_nan, Mux(first, a, b))


def minimum(m: Module, a: Value, b: Value) -> Value:
    """The smaller; NaN if either is, and -0 before +0 (IEEE 754-2019 minimum)."""
    return _choose(a, b, _below(a, b))


def maximum(m: Module, a: Value, b: Value) -> Value:
    """The larger; NaN if either is, and +0 after -0 (IEEE 754-2019 maximum)."""
    return _choose(a, b, _below(b, a))
