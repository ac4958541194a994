"""Cells of 4-bit operands: four products a cycle, against numpy, integers and rationals."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric import reference
from hw.numeric.formats import e2m1, fp32, int4, int8, int32
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from tests.hw.float import stimuli
from tests.hw.float.stimuli import Macs, expected, random_macs
from tests.hw.float.units import Bench, FloatCell
from tests.hw.numeric.rationals import E2M1, sum_of_products
from tests.slow_cases import quick_first

FORMATS = [e2m1, int4]


def simulate(cell, latency, macs):
    """Answers of a cell in the simulator of the language."""
    answers = []
    padding = np.zeros(3 + latency, np.uint32)

    async def testbench(ctx):
        columns = [np.concatenate([column, padding]).tolist() for column in macs]
        for row in zip(*columns, strict=True):
            for port, value in zip((cell.a, cell.w, cell.p), row, strict=True):
                ctx.set(port, value)
            answers.append(ctx.get(cell.o))
            await ctx.tick()

    simulator = Simulator(cell)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return np.array(answers[3 + latency :], np.uint32)


@pytest.mark.parametrize("latency", quick_first([2, 1, 3]))
@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_a_cell_adds_four_products(format_, latency, seed):
    macs = random_macs(400, seed, format_, format_)
    answers = simulate(FloatCell((format_,), latency), latency, macs)
    np.testing.assert_array_equal(answers, expected(macs, format_, format_), f"seed {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_cells_natively(heavy_lock, format_, seed):
    """Every product in each place, alone, and random ones beside random sums."""
    with heavy_lock():
        bench = Bench()
    rng = np.random.default_rng(seed)
    a, w = (stimuli.alone(x, 4) for x in stimuli.all_pairs(rng, 4))
    lone = Macs(a, w, np.zeros(len(a), np.uint32))
    for macs in (lone, random_macs(100_000, seed, format_, format_)):
        exact = expected(macs, format_, format_)
        answers = bench.run([f"{format_.name}_{latency}" for latency in (1, 2, 3)], *macs)
        for name, bits in answers.items():
            np.testing.assert_array_equal(bits, exact, name)


def test_int4_sums_are_those_of_integers(seed):
    macs = random_macs(2000, seed, int4, int4)
    answers = expected(macs, int4, int4)
    for a, w, p, got in zip(*(x.tolist() for x in (*macs, answers)), strict=True):
        products = [(x - (x & 8) * 2) * (y - (y & 8) * 2) for x, y in stimuli.factors(a, w, int4)]
        assert got == (p + sum(products)) % (1 << 32)


def test_quads_rounded_more_than_once_would_differ(seed):
    """The operands tell one rounding of five terms from one a product and from one of two."""
    macs = random_macs(20_000, seed, e2m1, e2m1)
    once = expected(macs, e2m1, e2m1)
    for step in (1, 2):
        sums = fp32.from_bits(macs.p)
        for low in range(0, 16, 4 * step):
            mask = (1 << 4 * step) - 1 << low
            part = Macs(macs.a & mask, macs.w, fp32.bits_of(sums))
            sums = fp32.from_bits(expected(part, e2m1, e2m1))
        assert (fp32.bits_of(sums) != once).sum() > 50


def test_a_zero_sum_is_positive():
    """Also of -0 and four products of -0, which a fixed-point number does not have."""
    negative = np.full((1, 4), -0.0, e2m1.dtype)
    ones = np.ones((1, 4), e2m1.dtype)
    answer = reference.mac_lane(np.full(1, -0.0, np.float32), negative, ones)
    assert fp32.bits_of(answer).tolist() == [0]
    products = stimuli.factors(0x8888, 0x2222, e2m1)
    assert sum_of_products(1 << 31, products, E2M1, E2M1) == 0


def test_a_matmul_takes_k_in_fours(seed):
    rng = np.random.default_rng(seed)
    for format_ in FORMATS:
        a, b = (format_.from_bits(rng.integers(0, 16, shape)) for shape in ((5, 11), (11, 3)))
        # Sums so large that the order of roundings shows.
        start = rng.integers(1 << 24, 1 << 25, (5, 3)).astype(format_.accumulator.dtype)
        start[0] *= 8
        padded_a = np.zeros((5, 12), format_.dtype)
        padded_b = np.zeros((12, 3), format_.dtype)
        padded_a[:, :11], padded_b[:11] = a, b
        sums = start
        for k in range(0, 12, 4):
            left = padded_a[:, np.newaxis, k : k + 4]
            sums = reference.mac_lane(sums, left, padded_b[k : k + 4].T)
        np.testing.assert_array_equal(reference.matmul(a, b, start), sums)


def test_integers_saturate():
    wide = np.array([-100, -8, 7, 100], np.int32)
    assert reference.cast(wide, int4).astype(int).tolist() == [-8, -8, 7, 7]
    assert reference.cast(reference.cast(wide, int4), int32).tolist() == [-8, -8, 7, 7]
    assert reference.cast(reference.cast(wide, int8), int4).astype(int).tolist() == [-8, -8, 7, 7]


def test_refusals():
    with pytest.raises(
        BadInputError, match=r"^Operands must be of one of bfloat16, .* not int4 and int8$"
    ):
        reference.mac(np.int32(0), np.zeros(4, int4.dtype), np.zeros(4, np.int8))
    with pytest.raises(ValueError, match=r"^Last axes of operands must be the 4 of a lane, not"):
        reference.mac_lane(np.int32(0), np.zeros(2, int4.dtype), np.zeros(2, int4.dtype))


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_chips_refuse_them(format_):
    message = f"Format must be one of bf16, fp16, int8, e4m3, e5m2, fp32, int32, not {format_.name}"
    with pytest.raises(BadInputError, match=message):
        compile_kernel(matmul, named["tiny"], dims={"M": 8, "N": 8, "K": 8}, dtype=format_)
