"""unit-a: random launch lists of a command processor, natively and by cocotb."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.command.processor import CommandProcessor
from sim.cocotb.bench_runner import run_bench
from sim.cocotb.unit_choice import environment_of_command
from sim.drivers.command_case import LISTED_CHIP
from tests.hw.command.command_stand import COMMAND_SETS, CommandStand, check_list
from tests.native.clocked_bundle import ClockedBundle
from tests.native.heavy_model import heavy_model

#: Valid lists of each set, a thousand of all; tests of the testbench, and those of valid lists.
LISTS, TESTS, VALID = 336, 7, 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def said(name):
    return f"{LISTS} lists, W {COMMAND_SETS[name].width_bits}: all equal"


@pytest.fixture(scope="module")
def model(heavy_lock):
    bundle = ClockedBundle({name: CommandStand(sizes) for name, sizes in COMMAND_SETS.items()})
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.mark.must("unit-a", goal="1,000 random launch lists natively: the fabric sees them by bits")
@pytest.mark.parametrize("name", COMMAND_SETS)
def test_random_lists_natively(model, name, seed, figure):
    rng = np.random.default_rng(seed)
    for _ in range(LISTS):
        check_list(model, name, COMMAND_SETS[name], rng)
    figure(said(name))


@pytest.mark.must("unit-a", goal="1,000 random launch lists by `sim command`: seen by bits")
@pytest.mark.parametrize("name", COMMAND_SETS)
def test_random_lists_by_cocotb(name, seed, heavy, figure):
    sizes = COMMAND_SETS[name]
    unit = CommandProcessor(**sizes._asdict(), fingerprint=LISTED_CHIP)
    environment = environment_of_command(sizes, LISTS // VALID)
    result = run_bench("command", seed=seed, component=unit, environment=environment)
    assert result.failed == 0 and result.passed == TESTS, result.failures
    figure(said(name))
