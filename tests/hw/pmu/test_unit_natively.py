"""The PMU natively: random programs of every kind, equal to numpy by bits under random stalls."""

import numpy as np
import pytest

from gen.verilog import emit
from sim.drivers.pmu_index_case import random_case
from sim.native.bundle import Bundle
from tests.hw.pmu.pmu_stand import PMU_SETS, PmuStand, check_case
from tests.native.stream_model import StreamModel


@pytest.mark.slow
def test_random_programs_equal_numpy_under_random_stalls(seed, heavy):
    bundle = Bundle({"a": PmuStand(PMU_SETS["a"])})
    rng = np.random.default_rng(seed)
    with StreamModel(emit(bundle), bundle) as model:
        for _ in range(100):
            check_case(model, "a", PMU_SETS["a"], random_case(rng, PMU_SETS["a"]), rng)
