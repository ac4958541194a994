"""PMU, AGCU and command processor natively: random programs under random stalls, by bits."""

import numpy as np

from sim.drivers import agcu_case, pmu_index_case
from tests.hw.agcu.agcu_stand import AGCU_SETS
from tests.hw.agcu.agcu_stand import check_case as check_agcu
from tests.hw.command.command_stand import COMMAND_SETS, check_list
from tests.hw.pmu.pmu_stand import PMU_SETS
from tests.hw.pmu.pmu_stand import check_case as check_pmu

PROGRAMS = 100


def test_programs_of_a_pmu_equal_numpy(systolic_units, seed):
    rng, sizes = np.random.default_rng(seed), PMU_SETS["a"]
    for _ in range(PROGRAMS):
        check_pmu(systolic_units, "pmu", sizes, pmu_index_case.random_case(rng, sizes), rng)


def test_programs_of_an_agcu_equal_numpy(systolic_units, seed):
    rng, sizes = np.random.default_rng(seed), AGCU_SETS["a"]
    for _ in range(PROGRAMS):
        check_agcu(systolic_units, "agcu", sizes, agcu_case.random_case(rng, sizes), rng)


def test_the_fabric_sees_what_launch_lists_ask_for(systolic_units, seed):
    rng = np.random.default_rng(seed)
    for _ in range(PROGRAMS):
        check_list(systolic_units, "command", COMMAND_SETS["a"], rng)
