"""house-a: moves and renames change no image, no answer and no cycle."""

import json

import pytest

from tests.house_table import RUNS, TABLE, kernel_row, unit_rows
from tests.hw.matrix.units import BUILDS

_GOAL = "hashes and cycles of 16 runs and of the stand-alone units are those of the table"
_TABLE = json.loads(TABLE.read_text())


@pytest.mark.slow
@pytest.mark.must("house-a", goal=_GOAL)
@pytest.mark.parametrize("words", RUNS)
def test_a_run_is_as_it_was(words, heavy, figure):
    assert kernel_row(words) == _TABLE["runs"][words]
    figure(f"{len(RUNS)} runs")


@pytest.mark.slow
@pytest.mark.must("house-a", goal=_GOAL)
@pytest.mark.parametrize("dataflow", BUILDS)
def test_stand_alone_units_are_as_they_were(dataflow, heavy, figure):
    rows = unit_rows(dataflow)
    assert rows == _TABLE["units"][dataflow]
    figure(f"{sum(map(len, _TABLE['units'].values()))} units")
