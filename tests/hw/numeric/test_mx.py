"""Microscaling: quantising, products of blocks and cells with scales, against rationals."""

from fractions import Fraction

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.numeric import reference
from hw.numeric.formats import bf16, e2m1, e4m3, e5m2, fp32, mxe2m1, mxe4m3, mxe5m2
from hw.numeric.mx import MX_FORMATS, SCALE, MxMatrix, mx_matmul, quantise
from sim.drivers.unit_driver import UnitTiling
from tests.hw.float.stimuli import factors, random_mx
from tests.hw.float.test_dot4 import simulate
from tests.hw.float.units import Bench, FloatCell
from tests.hw.numeric.rationals import E2M1, E4M3, E5M2, sum_of_products
from tests.slow_cases import quick_first

SPECS = {mxe4m3: E4M3, mxe5m2: E5M2, mxe2m1: E2M1}
FORMATS = list(MX_FORMATS)
NAN = 0x7FC00000


def scaled_by_rationals(macs, left, right):
    """Answers of multiply-accumulates by exact rationals."""
    answers = []
    for a, w, p in zip(*(x.tolist() for x in macs), strict=True):
        codes = a >> 16, w >> 16
        products = factors(a & 0xFFFF, w & 0xFFFF, left)
        exponent = sum(codes) - 254
        exact = sum_of_products(p, products, SPECS[left], SPECS[right], exponent)
        answers.append(NAN if 255 in codes else exact)
    return np.array(answers, np.uint32)


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_steps_are_those_of_rationals_rounded_once(format_, seed):
    macs, exact = random_mx(1500, seed, format_, format_)
    np.testing.assert_array_equal(scaled_by_rationals(macs, format_, format_), exact)
    # The operands reach every end of the range.
    magnitudes = exact & 0x7FFFFFFF
    assert ((magnitudes > 0) & (magnitudes < 1 << 23)).sum() > 50
    assert (magnitudes == fp32.infinity).sum() > 20 and (exact == NAN).sum() > 20
    flushed = (magnitudes == 0) & (macs.a & 0x7777 != 0) & (macs.w & 0x7777 != 0) & (macs.p == 0)
    assert flushed.sum() > 0


@pytest.mark.parametrize("latency", quick_first([2, 1, 3]))
@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_a_cell_scales_its_products(format_, latency, seed):
    macs, exact = random_mx(400, seed, format_, format_)
    answers = simulate(FloatCell((format_,), latency), latency, macs)
    np.testing.assert_array_equal(answers, exact, f"seed {seed}")


MIXES = [(left, right) for left in FORMATS[:2] for right in FORMATS[:2]] + [(mxe2m1, mxe2m1)]


@pytest.mark.slow
@pytest.mark.parametrize("left,right", MIXES, ids=lambda f: f.name)
def test_cells_natively(heavy_lock, left, right, seed):
    with heavy_lock():
        bench = Bench()
    macs, exact = random_mx(100_000, seed, left, right)
    name = "mxe2m1" if left == mxe2m1 else "mxfp8"
    mode = FORMATS.index(left) | FORMATS.index(right) << 1 if left.bits == 8 else 0
    for latency, bits in bench.run(
        [f"{name}_{latency}" for latency in (1, 2, 3)], *macs, mode=mode
    ).items():
        np.testing.assert_array_equal(bits, exact, latency)


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_scales_of_one_are_the_format_without(format_, seed):
    rng = np.random.default_rng(seed)
    element = MX_FORMATS[format_]
    a, b = (element.from_bits(rng.integers(0, 1 << element.bits, (5, 70))) for _ in range(2))
    ones = np.ones((5, 3), SCALE)
    start = rng.standard_normal((5, 5)).astype(np.float32)
    scaled = mx_matmul(MxMatrix(a, ones), MxMatrix(b, ones), start)
    assert scaled.tobytes() == reference.matmul(a, np.ascontiguousarray(b.T), start).tobytes()


def test_a_matmul_takes_the_scales_of_each_block(seed):
    """Steps of rational arithmetic, across blocks and an end that fills none."""
    rng = np.random.default_rng(seed)
    for format_ in FORMATS:
        element, extent, lane = MX_FORMATS[format_], 75, 16 // format_.bits
        finite = element.largest + 1
        bits = rng.integers(0, finite, (2, extent)) | rng.integers(0, 2, (2, extent)) << (
            element.bits - 1
        )
        codes = rng.integers(110, 140, (2, 3)).astype(np.uint8)
        left, right = (
            MxMatrix(element.from_bits(x[np.newaxis]), code[np.newaxis].view(SCALE))
            for x, code in zip(bits, codes, strict=True)
        )
        total = 0
        for k in range(0, extent, lane):
            exponent = int(codes[:, k // 32].astype(int).sum()) - 254
            pairs = [(int(bits[0, i]), int(bits[1, i])) for i in range(k, min(k + lane, extent))]
            total = sum_of_products(total, pairs, SPECS[format_], SPECS[format_], exponent)
        assert fp32.bits_of(mx_matmul(left, right)).tolist() == [[total]]


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_quantising_follows_the_standard(format_, seed):
    """The shared exponent is that of the largest magnitude less the format's largest exponent."""
    rng = np.random.default_rng(seed)
    element = MX_FORMATS[format_]
    bits = rng.integers(0, 1 << 31, (300, 40)) | rng.integers(0, 2, (300, 40)) << 31
    x = fp32.from_bits(
        bits & ~(0xFF << 23)
        | rng.integers(0, 60, (300, 40)) + 190 - 2 * np.arange(300)[:, np.newaxis].clip(0, 94) << 23
    )
    x[0] = 0
    x[1, 3], x[2, 35] = np.inf, np.nan
    elements, codes = quantise(x, format_).elements, quantise(x, format_).scales.view(np.uint8)
    emax = {mxe4m3: 8, mxe5m2: 15, mxe2m1: 2}[format_]
    for line in range(len(x)):
        for block in range(2):
            part = x[line, 32 * block : 32 * block + 32]
            code = int(codes[line, block])
            if not np.isfinite(part).all():
                assert code == 255
                continue
            largest = max(abs(Fraction(float(value))) for value in part)
            if largest == 0:
                assert code == 0
                continue
            whole = 0
            while largest >= Fraction(2) ** (whole + 1):
                whole += 1
            while largest < Fraction(2) ** whole:
                whole -= 1
            assert code == min(max(whole - emax, -127), 127) + 127
            scaled = np.ldexp(part.astype(np.float64), 127 - code).astype(np.float32)
            exact = element.bits_of(reference.cast(scaled, element, saturate=True))
            found = element.bits_of(elements[line, 32 * block : 32 * block + 32])
            np.testing.assert_array_equal(found, exact)


def test_a_quantised_product_is_near_the_exact_one(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 8, 256)).astype(np.float32)
    for format_, limit in ((mxe4m3, 0.02), (mxe5m2, 0.04), (mxe2m1, 0.1)):
        product = mx_matmul(quantise(a, format_), quantise(b, format_))
        error = np.abs(product - a @ b.T) / (np.abs(a) @ np.abs(b.T))
        assert 0 < error.max() < limit


def _ones(lines, extent, dtype, blocks):
    return MxMatrix(np.ones((lines, extent), dtype), np.ones((lines, blocks), SCALE))


def test_refusals():
    good = _ones(2, 40, e4m3.dtype, 2)
    with pytest.raises(BadInputError, match="^Microscaled operands must be .* not bfloat16 with"):
        mx_matmul(_ones(2, 40, bf16.dtype, 2), good)
    with pytest.raises(
        BadInputError, match=r"^Operands must be of one width, not mxe4m3 and mxe2m1$"
    ):
        mx_matmul(good, _ones(2, 40, e2m1.dtype, 2))
    with pytest.raises(ValueError, match=r"^Scales of elements \(2, 40\) must be one for every 32"):
        mx_matmul(good, _ones(2, 40, e5m2.dtype, 1))
    with pytest.raises(ValueError, match="^Operands must have one inner extent, not 40 and 41$"):
        mx_matmul(good, _ones(2, 41, e5m2.dtype, 2))
    with pytest.raises(BadInputError, match="^Accumulator must be of float32, not float64$"):
        mx_matmul(good, good, np.zeros((2, 2)))
    with pytest.raises(BadInputError, match="^Microscaled format must be one of .* not e4m3$"):
        quantise(np.zeros((2, 2), np.float32), e4m3)
    with pytest.raises(BadInputError, match="^Values must be a matrix of float32, not float64 of"):
        quantise(np.zeros((2, 2)), mxe4m3)


def test_a_unit_takes_microscaled_operands_with_their_scales():
    array = ArrayConfig(2, 2, Dataflow.WS, (mxe4m3,))
    tiling = UnitTiling(UnitConfig(array), 3, 4, 40, (mxe4m3, mxe4m3))
    a, b = _ones(3, 40, e4m3.dtype, 2), _ones(4, 40, e4m3.dtype, 2)
    message = "^Activations must be 3 x 40 of mxe4m3, not 3 x 40 of float8_e4m3fn$"
    with pytest.raises(BadInputError, match=message):
        tiling.streams(a.elements, b)
    message = "^Weights must be 4 x 40 of mxe4m3, not 3 x 40 of float8_e4m3fn with scales$"
    with pytest.raises(BadInputError, match=message):
        tiling.streams(a, a)
    # A lane of 24 bits: two elements and the scale of their block, 1.
    one = int(e4m3.bits_of(np.ones((), e4m3.dtype)))
    assert tiling.streams(a, b)[0].view(np.uint8)[0, :6].tolist() == [one, one, 127] * 2
