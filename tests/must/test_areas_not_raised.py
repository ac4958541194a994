"""house-g: no unit has more than 1.005 times the cells it had before the change of structure."""

import json

import pytest

from tests.house_area import RUNS, TABLE, area_rows

_BEFORE = json.loads(TABLE.read_text())


@pytest.mark.slow
@pytest.mark.must("house-g", goal="area of each unit <= 1.005 x that before the work")
@pytest.mark.parametrize("words", RUNS)
def test_no_unit_grew(words, figure):
    """The same units in the same numbers, each within 1.005 times its cells."""
    before, now = _BEFORE[words], area_rows(words)
    assert [row[:2] for row in now] == [row[:2] for row in before]
    ratios = [new[2] / old[2] for old, new in zip(before, now, strict=True)]
    assert max(ratios) <= 1.005, dict(zip(map(str, before), ratios, strict=True))
    figure(f"{min(ratios):.4f} to {max(ratios):.4f}")
