"""The oracle of products: against exact rationals, and independent of the project."""

import ast
import math
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import sim.oracle
from hw.numeric import reference
from hw.numeric.formats import named as formats
from sim.oracle import product

FLOATS = {"bf16": 1, "fp16": 1, "e4m3": 2, "e5m2": 2, "e2m1": 4}


def rounded(exact: Fraction) -> np.float32:
    """Nearest fp32 of a rational, ties to even, by integers alone."""
    if exact == 0:
        return np.float32(0)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    units = round(magnitude / unit)  # Fraction rounds ties to even
    value = units * unit
    large = value >= Fraction(2) ** 128
    return np.float32(math.copysign(math.inf if large else float(value), exact))


def by_rationals(a, b, step):
    """Sums in exact rationals, rounded every so many products; operands must be finite."""
    m, k = a.shape
    sums = np.zeros((m, b.shape[1]), np.float32)
    for i, j in np.ndindex(sums.shape):
        for at in range(0, k, step):
            if not np.isfinite(sums[i, j]):
                break
            exact = Fraction(float(sums[i, j]))
            for n in range(at, min(at + step, k)):
                exact += Fraction(float(a[i, n])) * Fraction(float(b[n, j]))
            sums[i, j] = rounded(exact)
    return sums + np.float32(0)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_equal_exact_rationals_rounded_once(name, seed):
    rng = np.random.default_rng(seed)
    fmt = formats[name]
    for spread in (1, 3, 12, 40):
        centre = rng.integers(spread, 256 - spread) if name == "bf16" else 0

        def operand(*shape, spread=spread, centre=centre):
            bits = rng.integers(0, 1 << fmt.bits, shape)
            if name == "bf16":
                field = rng.integers(centre - spread, centre + spread, shape)
                bits = bits & 0x807F | field.clip(0, 254) << 7
            values = fmt.from_bits(bits)
            values[~np.isfinite(values.astype(np.float32))] = 1
            return values

        a, b = operand(3, 12), operand(12, 3)
        got = product(a, b, np.float32)
        expected = by_rationals(a, b, FLOATS[name])
        finite = np.isfinite(expected)  # after an infinity the rationals have no answer
        assert got[finite].tobytes() == expected[finite].tobytes()


def test_a_sum_beside_a_midpoint_is_rounded_once():
    # 1 + 2^-24 is a midpoint; 2^-80 beyond it is lost by float64, which would then tie to even.
    a = np.array([[1, 2.0**-12, 2.0**-40]], ml_dtypes.bfloat16)
    b = np.array([[1], [2.0**-12], [2.0**-40]], ml_dtypes.bfloat16)
    assert product(a, b, np.float32)[0, 0] == np.float32(1)  # one rounding per product
    pair = np.array([[0, 2.0**-8, 2.0**-12, 2.0**-14]], ml_dtypes.float8_e5m2)
    ones = np.array([[0], [2.0**8], [2.0**-12], [2.0**-14]], ml_dtypes.float8_e5m2)
    # 1 first, then 2^-24 + 2^-28 at once: above the midpoint.
    assert product(pair, ones, np.float32)[0, 0] == np.float32(1 + 2.0**-23)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_integers_are_exact_modulo_2_to_32(name, seed):
    rng = np.random.default_rng(seed)
    fmt = formats[name]
    a, b = (fmt.from_bits(rng.integers(0, 1 << fmt.bits, shape)) for shape in ((4, 50), (50, 3)))
    exact = a.astype(object).dot(b.astype(object)) if name == "int8" else None
    wide = a.astype(np.int64) @ b.astype(np.int64)
    assert exact is None or (exact == wide).all()
    assert product(a, b, np.int32).tolist() == wide.tolist()
    most = np.full((1, 1 << 18), -128, np.int8)
    assert product(most, most.T, np.int32)[0, 0] == 0  # 2^32 wraps to 0


@pytest.mark.parametrize(
    ("left", "right", "bits"),
    [
        ([np.inf, 1], [0, 1], 0x7FC00000),
        ([np.inf, np.inf], [1, -1], 0x7FC00000),
        ([np.nan, 1], [1, 1], 0x7FC00000),
        ([-np.inf, 5], [2, 1], 0xFF800000),
        ([2.0**127, -1], [2.0**127, 1], 0x7F800000),
        ([-(2.0**-133), 0], [2.0**-133, 0], 0),
        ([1, -1], [1, 1], 0),
        ([2.0**-75, 0], [2.0**-74, 0], 1),
    ],
)
def test_special_values(left, right, bits):
    a = np.array([left], ml_dtypes.bfloat16)
    b = np.array([right], ml_dtypes.bfloat16).T
    assert product(a, b, np.float32).view(np.uint32)[0, 0] == bits
    short = product(a, b, ml_dtypes.bfloat16).view(np.uint16)[0, 0]
    assert short == (bits >> 16 if bits != 1 else 0)


@pytest.mark.parametrize("name", [*FLOATS, "int8", "int4"])
def test_golden_has_the_same_bytes(name, seed):
    """Golden's model and the oracle share no line: all bits of operands are drawn."""
    rng = np.random.default_rng(seed)
    fmt = formats[name]
    outs = ("fp32", "bf16", "fp16", "e4m3", "e5m2") if fmt.is_float else ("int32",)
    for _ in range(15):
        m, k, n = rng.integers(1, 30, 3)
        a, b = (fmt.from_bits(rng.integers(0, 1 << fmt.bits, s)) for s in ((m, k), (k, n)))
        for out in outs:
            golden = reference.cast(reference.matmul(a, b), formats[out])
            assert product(a, b, formats[out].dtype).tobytes() == golden.tobytes()


def test_it_imports_nothing_of_the_project():
    tree = ast.parse(Path(sim.oracle.__file__).read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Name):
            assert node.id not in ("__import__", "eval", "exec")
    assert names == {"typing", "ml_dtypes", "numpy"}
