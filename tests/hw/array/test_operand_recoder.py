"""Recoder of operands: every code against its value, and the NaN of fills, which is +0."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hw.array.operand import OperandRecoder
from hw.float.recode import Coding
from hw.numeric.formats import bf16, e4m3, e5m2, fp16, int8

FILL = 0x7FFF


def recoded(formats, mode, lanes):
    """Operands that the recoder makes of the bits of lanes."""
    m = Module()
    m.submodules.recoder = recoder = OperandRecoder(formats=formats)
    bits = Signal.like(recoder.i_bits)
    m.d.comb += [recoder.i_bits.eq(bits), recoder.mode.eq(mode)]
    found = []

    async def bench(ctx):
        for lane in lanes.tolist():
            ctx.set(bits, lane)
            found.append(ctx.get(recoder.o_operand))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return np.array(found)


def values(operands, coding):
    """Numbers of recoded operands by the definition of the coding, which has no subnormals."""
    fraction = operands & (1 << coding.fraction_bits) - 1
    code = operands >> coding.fraction_bits & (1 << coding.exponent_bits) - 1
    sign = np.where(operands >> coding.bits - 1, -1.0, 1.0)
    finite = np.ldexp(1 + fraction / (1 << coding.fraction_bits), code - coding.offset)
    finite = np.where(code == 0, 0.0, finite)
    special = np.select([code == coding.nan, code == coding.infinity], [np.nan, np.inf], finite)
    return sign * special


@pytest.mark.parametrize(
    ("formats", "mode"),
    [
        pytest.param((bf16,), 0),
        pytest.param((fp16,), 0),
        pytest.param((bf16, fp16), 0, marks=pytest.mark.slow),
        pytest.param((bf16, fp16), 1, marks=pytest.mark.slow),
        pytest.param((bf16, int8), 0, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_every_code_has_its_value_and_only_the_fill_is_zero(formats, mode):
    """65,536 codes; the sign of a NaN, also, stays, so that only 0x7FFF becomes +0."""
    codes = np.arange(1 << 16)
    floats = [each for each in formats if each.is_float]
    operands = recoded(formats, mode, codes)
    with np.errstate(invalid="ignore"):
        exact = formats[mode].from_bits(codes).astype(np.float64)
    exact[FILL] = 0.0
    found = values(operands, Coding.of(tuple(floats)))
    np.testing.assert_array_equal(found, exact)
    assert operands[FILL] == 0
    assert (operands[1:].astype(bool) == (codes[1:] != FILL)).all()


@pytest.mark.parametrize(("formats", "mode"), [((bf16, int8), 1), ((int8,), 0)])
def test_pairs_of_int8_pass_unchanged(formats, mode):
    lanes = np.array([FILL, 0xFFFF, 0x7F7F, 0x8000, 1])
    assert recoded(formats, mode, lanes).tolist() == lanes.tolist()


@pytest.mark.parametrize("mode", [0, 1])
def test_no_nan_of_8_bits_is_zero(mode):
    formats, coding = (e4m3, e5m2), Coding.of((e4m3, e5m2))
    operands = recoded(formats, mode, np.array([0x7F7F, 0x7FFF, 0xFFFF]))
    for low in (0, coding.bits):
        parts = operands >> low & (1 << coding.bits) - 1
        assert np.isnan(values(parts, coding)).all()
