"""The campaign in `make test`, on the model of tiny, and in `make regress`: seed of the day."""

import datetime

import pytest

from hw.arch.config import named
from sim.campaign.kinds import BUILT, KINDS
from sim.campaign.models import Models
from sim.campaign.runner import run_campaign

#: Of a day; `make regress` runs 20 minutes of other cases.
_SMOKE_SECONDS = 5


@pytest.fixture
def today():
    """Seed of the day."""
    return int(datetime.date.today().strftime("%Y%m%d"))


def test_a_smoke_run_finds_nothing(today, heavy, tmp_path):
    """On RTL only the chip whose model other tests need, too; it is built before."""
    with Models() as models:
        models.of(named["tiny"])
        summary = run_campaign(
            today,
            _SMOKE_SECONDS,
            kinds=BUILT,
            models=models,
            chips=["tiny"],
            corpus=tmp_path,
            most_failures=1,
        )
        assert models.chips == {named["tiny"]}
    assert summary.failures == [], f"seed {today}"
    assert sum(summary.cases.values()) >= 3


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_twenty_minutes_find_nothing(today, heavy, tmp_path):
    with Models() as models:
        summary = run_campaign(
            today + 1, 1200, kinds=tuple(KINDS), models=models, corpus=tmp_path, most_failures=3
        )
    assert summary.failures == [], f"seed {today + 1}"
    assert sum(summary.cases.values()) >= 200
