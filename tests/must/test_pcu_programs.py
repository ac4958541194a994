"""unit-a: random programs of a PCU with lanes, natively and by cocotb, equal to numpy by bits."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import ChipConfig, PcuConfig
from hw.pcu.unit import Pcu
from sim.cocotb.bench_runner import run_bench
from sim.cocotb.unit_choice import environment_of_pcu
from sim.drivers.pcu_case import random_case
from sim.native.bundle import Bundle
from tests.hw.pcu.lane_programs import check_case
from tests.native.stream_model import StreamModel

#: Link width, lanes and significand bits of the functions.
SETS = {
    "a": (64, 1, 12),
    "b": (64, 2, 24),
    "c": (256, 2, 16),
    "d": (256, 4, 12),
    "e": (256, 8, 24),
}
#: Programs of each set: a thousand of all.
PROGRAMS = 200


def chip_of(name):
    width, lanes, bits = SETS[name]
    pcu = PcuConfig(accumulator_rows=16, lanes=lanes, function_bits=bits)
    return ChipConfig(2, 2, width_bits=width, pcu=pcu)


def unit(name):
    chip = chip_of(name)
    return Pcu(width_bits=chip.width_bits, config=chip.pcu)


@pytest.fixture(scope="module")
def model(heavy_lock):
    """PCUs of every set, in one native model."""
    bundle = Bundle({name: unit(name) for name in SETS})
    with heavy_lock():
        built = StreamModel(emit(bundle), bundle, options=["-fno-inline"])
    with built:
        yield built


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-a", goal="1,000 random PCU programs natively: = numpy by bits")
@pytest.mark.parametrize("name", SETS)
def test_random_programs_natively(model, name, seed, figure):
    rng = np.random.default_rng(seed)
    chip = chip_of(name)
    for _ in range(PROGRAMS):
        check_case(model, name, chip, random_case(rng, chip), rng)
    width, lanes, bits = SETS[name]
    figure(f"{PROGRAMS} programs, W {width}, t {lanes}, {bits} bits: all equal")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-a", goal="1,000 random PCU programs by `sim pcu`: = numpy by bits")
@pytest.mark.parametrize("name", SETS)
def test_random_programs_by_cocotb(name, seed, heavy, figure):
    environment = environment_of_pcu(chip_of(name), PROGRAMS)
    result = run_bench("pcu", seed=seed, component=unit(name), environment=environment)
    assert result.failed == 0 and result.passed == 1, result.failures
    width, lanes, bits = SETS[name]
    figure(f"{PROGRAMS} programs, W {width}, t {lanes}, {bits} bits: all equal")
