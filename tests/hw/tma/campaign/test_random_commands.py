"""Random commands of a stand-alone TMA unit in the native model, whole memories against numpy."""

import pytest

from tests.hw.tma.campaign.random_campaign import run_commands
from tests.hw.tma.campaign.random_modes import MODES
from tests.hw.tma.standalone.unit_stand import STAND_SIZES

pytestmark = pytest.mark.slow


@pytest.mark.must("tma-a", goal="500 random commands at one width, on a shared build")
def test_random_commands_are_those_of_numpy(tma_unit, seed, figure):
    covered = run_commands(tma_unit, STAND_SIZES[256], seed, 500)
    assert set(covered.modes) == {mode.name for mode in MODES}
    figure(f"{covered.commands} commands, {covered.beats:,} beats at 256 bits")
