"""unit-a: random programs of a PMU, natively and by cocotb, equal to numpy by bits."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.pmu.unit import Pmu
from sim.cocotb.bench_runner import run_bench
from sim.cocotb.unit_choice import environment_of_pmu
from sim.drivers.pmu_index_case import random_case
from sim.native.bundle import Bundle
from tests.hw.pmu.pmu_stand import PMU_SETS, PmuStand, check_case
from tests.native.heavy_model import heavy_model

#: Programs of each set: more than a thousand of all; and tests of the testbench.
PROGRAMS, TESTS = 342, 9

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def said(name):
    width, capacity, slots = PMU_SETS[name]
    return f"{PROGRAMS} programs, W {width}, {capacity} bytes, {slots} slots: all equal"


@pytest.fixture(scope="module")
def model(heavy_lock):
    bundle = Bundle({name: PmuStand(sizes) for name, sizes in PMU_SETS.items()})
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.mark.must("unit-a", goal="1,000 random PMU programs natively: = numpy by bits")
@pytest.mark.parametrize("name", PMU_SETS)
def test_random_programs_natively(model, name, seed, figure):
    rng = np.random.default_rng(seed)
    for _ in range(PROGRAMS):
        check_case(model, name, PMU_SETS[name], random_case(rng, PMU_SETS[name]), rng)
    figure(said(name))


@pytest.mark.must("unit-a", goal="1,000 random PMU programs by `sim pmu`: = numpy by bits")
@pytest.mark.parametrize("name", PMU_SETS)
def test_random_programs_by_cocotb(name, seed, heavy, figure):
    unit = Pmu(**PMU_SETS[name]._asdict())
    environment = environment_of_pmu(PMU_SETS[name], PROGRAMS // TESTS)
    result = run_bench("pmu", seed=seed, component=unit, environment=environment)
    assert result.failed == 0 and result.passed == TESTS, result.failures
    figure(said(name))
