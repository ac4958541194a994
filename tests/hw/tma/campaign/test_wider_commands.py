"""Random commands of a TMA unit with reductions and several scratchpads, against numpy."""

import pytest

from tests.hw.tma.campaign.wider_modes import WIDER_MODES
from tests.hw.tma.campaign.wider_units import run_wider_commands


@pytest.mark.slow
def test_random_commands_are_those_of_numpy(seed, heavy):
    covered = run_wider_commands(64, seed, 4000)
    assert set(covered.modes) == {mode.name for mode in WIDER_MODES}
    assert covered.remote > 0
