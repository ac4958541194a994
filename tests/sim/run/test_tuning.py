"""``kernel.tune``: never slower, what is given stays, and a search that says how it ended."""

import pytest

import tilewright as tw
from sim.run import tuning
from sw.kernels.matmul import matmul

SIZES = {"M": 24, "N": 20, "K": 40}


def test_the_schedule_found_is_the_fastest_verified_one():
    found = matmul.tune("tiny", dtype=tw.bf16, trials=12, measured=2, backend="emulator", **SIZES)
    ran = [each for each in found.trials if each.verified is not None]
    assert found.trials[0].schedule == tw.Schedule() and 1 < len(ran) <= 3
    assert found.cycles == min(each.predicted for each in ran) <= found.default_cycles
    own = matmul.compile("tiny", dtype=tw.bf16, schedule=found.schedule, **SIZES)
    assert own.predicted_cycles == found.cycles
    assert len({each.schedule for each in found.trials}) == len(found.trials)
    assert "schedules tried" in str(found)


def test_choices_that_are_given_stay():
    given = tw.Schedule(col_par={"c": 1}, tile={"j": 16})
    found = matmul.tune(
        "tiny", dtype=tw.bf16, schedule=given, trials=8, backend="emulator", **SIZES
    )
    assert all("j" not in each.schedule.tile and not each.schedule.col_par for each in found.trials)


def test_a_search_ends_when_no_change_is_faster_or_out_of_trials():
    sizes = {"M": 8, "N": 8, "K": 9}
    options = dict(dtype=tw.bf16, measured=0, backend="emulator", **sizes)
    assert not matmul.tune("tiny", trials=2, **options).exhausted
    whole = matmul.tune("tiny", trials=200, **options)
    assert whole.exhausted and len(whole.trials) < 200
    best = min(each.predicted for each in whole.trials if each.predicted)
    assert best <= whole.default_cycles


def test_a_schedule_that_is_wrong_is_not_chosen(monkeypatch):
    real = tuning.run

    def wrong_unless_first(job, compiled, fields):
        outcome = real(job, compiled, fields)
        outcome.report["verified"] = job.problem.schedule == tw.Schedule()
        return outcome

    monkeypatch.setattr(tuning, "run", wrong_unless_first)
    found = matmul.tune("tiny", dtype=tw.bf16, trials=16, backend="emulator", **SIZES)
    assert found.schedule == tw.Schedule()
    assert any(each.verified is False for each in found.trials)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be"),
        ({"measured": -1}, "measured must be"),
        ({"backend": "golden"}, "backend must be rtl or emulator"),
        ({"slot": 3}, "unknown option 'slot'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(tw.BadInputError, match=message):
        matmul.tune("tiny", dtype=tw.bf16, **SIZES, **options)
