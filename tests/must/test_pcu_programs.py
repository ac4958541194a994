"""unit-a: random programs of a PCU with lanes, natively and by cocotb, equal to numpy by bits."""

import numpy as np
import pytest

from hw.pcu.unit import Pcu
from sim.cocotb.bench_runner import run_bench
from sim.cocotb.unit_choice import environment_of_pcu
from sim.drivers.pcu_case import random_case
from tests.hw.pcu.lane_programs import check_case
from tests.hw.units import LANE_SETS, lane_chip

#: Programs of each set: a thousand of all.
PROGRAMS = 200


def said(name):
    width, lanes, bits = LANE_SETS[name]
    return f"{PROGRAMS} programs, W {width}, t {lanes}, {bits} bits: all equal"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-a", goal="1,000 random PCU programs natively: = numpy by bits")
@pytest.mark.parametrize("name", LANE_SETS)
def test_random_programs_natively(lane_pcus, name, seed, figure):
    rng = np.random.default_rng(seed)
    chip = lane_chip(name)
    for _ in range(PROGRAMS):
        check_case(lane_pcus, name, chip, random_case(rng, chip), rng)
    figure(said(name))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-a", goal="1,000 random PCU programs by `sim pcu`: = numpy by bits")
@pytest.mark.parametrize("name", LANE_SETS)
def test_random_programs_by_cocotb(name, seed, heavy, figure):
    chip = lane_chip(name)
    unit = Pcu(width_bits=chip.width_bits, config=chip.pcu)
    environment = environment_of_pcu(chip, PROGRAMS)
    result = run_bench("pcu", seed=seed, component=unit, environment=environment)
    assert result.failed == 0 and result.passed == 1, result.failures
    figure(said(name))
