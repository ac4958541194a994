"""PMU, AGCU and command processor natively: random programs under random stalls, by bits."""

import numpy as np
import pytest

from sim.drivers import agcu_case, pmu_index_case
from tests.hw.agcu.agcu_stand import AGCU_SETS
from tests.hw.agcu.agcu_stand import check_case as check_agcu
from tests.hw.command.command_stand import COMMAND_SETS, check_list
from tests.hw.pmu.pmu_stand import PMU_SETS
from tests.hw.pmu.pmu_stand import check_case as check_pmu

pytestmark = pytest.mark.slow
PROGRAMS = 100


def test_programs_of_a_pmu_equal_numpy(units_with_memories, seed):
    rng, sizes = np.random.default_rng(seed), PMU_SETS["a"]
    for _ in range(PROGRAMS):
        check_pmu(units_with_memories, "pmu", sizes, pmu_index_case.random_case(rng, sizes), rng)


def test_programs_of_an_agcu_equal_numpy(units_with_memories, seed):
    rng, sizes = np.random.default_rng(seed), AGCU_SETS["a"]
    for _ in range(PROGRAMS):
        check_agcu(units_with_memories, "agcu", sizes, agcu_case.random_case(rng, sizes), rng)


def test_the_fabric_sees_what_launch_lists_ask_for(units_with_memories, seed):
    rng = np.random.default_rng(seed)
    for _ in range(PROGRAMS):
        check_list(units_with_memories, "command", COMMAND_SETS["a"], rng)
