"""unit-a: random programs of an AGCU, natively and by cocotb, equal to numpy by bits."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.agcu.unit import Agcu
from sim.cocotb.bench_runner import run_bench
from sim.cocotb.unit_choice import environment_of_agcu
from sim.drivers.agcu_case import random_case
from tests.hw.agcu.agcu_stand import AGCU_SETS, AgcuStand, check_case
from tests.native.clocked_bundle import ClockedBundle
from tests.native.heavy_model import heavy_model

#: Programs of each set, a thousand of all, and tests of the testbench.
PROGRAMS, TESTS = 336, 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def said(name):
    return f"{PROGRAMS} programs, W {AGCU_SETS[name].width_bits}: all equal"


@pytest.fixture(scope="module")
def model(heavy_lock):
    bundle = ClockedBundle({name: AgcuStand(sizes) for name, sizes in AGCU_SETS.items()})
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.mark.must("unit-a", goal="1,000 random AGCU programs natively: = numpy by bits")
@pytest.mark.parametrize("name", AGCU_SETS)
def test_random_programs_natively(model, name, seed, figure):
    rng = np.random.default_rng(seed)
    for _ in range(PROGRAMS):
        check_case(model, name, AGCU_SETS[name], random_case(rng, AGCU_SETS[name]), rng)
    figure(said(name))


@pytest.mark.must("unit-a", goal="1,000 random AGCU programs by `sim agcu`: = numpy by bits")
@pytest.mark.parametrize("name", AGCU_SETS)
def test_random_programs_by_cocotb(name, seed, heavy, figure):
    unit = Agcu(**AGCU_SETS[name]._asdict())
    environment = environment_of_agcu(AGCU_SETS[name], PROGRAMS // TESTS)
    result = run_bench("agcu", seed=seed, component=unit, environment=environment)
    assert result.failed == 0 and result.passed == TESTS, result.failures
    figure(said(name))
