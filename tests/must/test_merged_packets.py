"""unit-e: nine PCUs whose lanes drain, merged at one PMU, by packets of one vector and of 64."""

import pytest

from gen.verilog import emit
from hw.chip import Chip
from sim.native.chip_model import ChipModel
from tests.hw.pcu.merged_drains import CHIP, cycles_of_a_pass


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-e", goal="order exact; >= 3 x fewer cycles with packets of 1 than of 64")
def test_nine_drains_of_one_lane_each(seed, heavy, figure):
    """A drain sends a vector in four cycles, so nine are faster than the port."""
    with ChipModel(emit(Chip(CHIP)), CHIP) as model:
        one, many = (
            cycles_of_a_pass(model, seed, packet_vectors=each, lanes=True) for each in (1, 64)
        )
    figure(f"{one:.0f} cycles a pass with packets of 1, {many:.0f} with 64: {many / one:.2f} x")
    assert many >= 3 * one
