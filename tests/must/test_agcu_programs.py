"""unit-a: random programs of an AGCU by cocotb, equal to numpy by bits."""

import pytest

from hw.agcu.unit import Agcu
from sim.cocotb.bench_runner import run_bench
from sim.cocotb.unit_choice import environment_of_agcu
from sim.drivers.agcu_case import AgcuSizes

#: Programs of each set, a thousand of all, and tests of the testbench.
PROGRAMS, TESTS = 336, 3
SETS = {
    "a": AgcuSizes(64, 32, 32, 4, 2),
    "b": AgcuSizes(128, 40, 64, 8, 3),
    "c": AgcuSizes(256, 48, 128, 16, 4),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-a", goal="1,000 random AGCU programs by `sim agcu`: = numpy by bits")
@pytest.mark.parametrize("name", SETS)
def test_random_programs_by_cocotb(name, seed, heavy, figure):
    unit = Agcu(**SETS[name]._asdict())
    environment = environment_of_agcu(SETS[name], PROGRAMS // TESTS)
    result = run_bench("agcu", seed=seed, component=unit, environment=environment)
    assert result.failed == 0 and result.passed == TESTS, result.failures
    figure(f"{PROGRAMS} programs, W {SETS[name].width_bits}: all equal")
