"""The pieces at a grid's edges: recoding of operands, and the cast of sums."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.float.recode import EXPONENT_OFFSET, OPERAND_BITS
from hw.numeric.formats import bf16, fp32
from hw.numeric.reference import cast
from tests.hw.float.bench import Bench, Edge, Stimulus
from tests.hw.float.triples import BF16_EDGES, FP32_EDGES, random_triples


def expected_operands(bits):
    """Recoded bf16 by ``frexp``, which knows nothing of fields; the NaN of fills is +0."""
    bits = np.where(bits == 0x7FFF, 0, bits)
    with np.errstate(invalid="ignore"):
        values = bf16.from_bits(bits).astype(np.float64)
    finite = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(finite, np.abs(values), 1.0))
    fraction = ((2 * mantissa - 1) * 128).astype(np.int64)
    code = EXPONENT_OFFSET + exponent - 1
    for special, constant in ((values == 0, 0), (np.isinf(values), 448), (np.isnan(values), 480)):
        code = np.where(special, constant, code)
    return np.where(finite, fraction, 0) | code << 7 | (bits >> 15).astype(np.int64) << 16


def hard_sums(count, seed):
    """fp32 bits near every bf16: half-way, and one bit to each side of it."""
    rng = np.random.default_rng(seed)
    high = rng.integers(0, 1 << 16, count, np.uint32) << 16
    low = rng.choice(np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32), count)
    edges = np.array([edge | sign for edge in FP32_EDGES for sign in (0, 1 << 31)], np.uint32)
    return np.concatenate([edges, high | low, random_triples(count, seed).acc])


def test_a_zero_wire_is_zero_and_one_has_the_documented_code():
    assert OPERAND_BITS == 17
    assert expected_operands(np.array([0, 0x3F80, 0x8001])).tolist() == [
        0,
        320 << 7,
        1 << 16 | 187 << 7,
    ]


def test_pieces_on_edges(seed):
    """All edge values and 300 random ones, in the simulator of the language."""
    rng = np.random.default_rng(seed)
    operands = np.array([edge | sign for edge in BF16_EDGES for sign in (0, 1 << 15)], np.uint16)
    sums = hard_sums(300, seed)
    operands = np.resize(operands, len(sums))
    operands[len(sums) // 2 :] = rng.integers(0, 1 << 16, len(sums) - len(sums) // 2)
    dut = Edge()

    async def testbench(ctx):
        for operand, sum_, recoded, rounded in zip(
            operands.tolist(),
            sums.tolist(),
            expected_operands(operands).tolist(),
            bf16.bits_of(cast(fp32.from_bits(sums), bf16)).tolist(),
            strict=True,
        ):
            ctx.set(dut.bits, operand)
            ctx.set(dut.sum_, sum_)
            await ctx.delay(1e-9)
            assert (hex(operand), ctx.get(dut.recoded)) == (hex(operand), recoded)
            assert (hex(sum_), ctx.get(dut.cast)) == (hex(sum_), rounded)

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()


@pytest.fixture(scope="module")
def bench(heavy_lock):
    with heavy_lock():
        yield Bench()


@pytest.mark.slow
def test_pieces_exhaustively(bench, seed):
    """Every bf16 is recoded, and a million sums are cast, natively."""
    sums = hard_sums(500_000, seed)
    operands = np.resize(np.arange(1 << 16, dtype=np.uint16), len(sums))
    idle = np.zeros(len(sums))
    outputs = bench.run(Stimulus(operands, idle, sums, idle, idle), 0)
    np.testing.assert_array_equal(outputs["recoded"], expected_operands(operands))
    rounded = bf16.bits_of(cast(fp32.from_bits(sums), bf16))
    np.testing.assert_array_equal(outputs["cast"], rounded)
