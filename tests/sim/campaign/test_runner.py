"""Runs of the campaign: same cases for a seed, shrinking, the corpus, the command."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from hw.arch.config import named
from sim.campaign.__main__ import main
from sim.campaign.case import Verdict, chip_of_case, command, line
from sim.campaign.cases.program_case import smaller_program
from sim.campaign.corpus import keep, load
from sim.campaign.features import BINS, LEAST, missing
from sim.campaign.generators.programs import problem_of
from sim.campaign.generators.random_memory import conditions_of, random_memory
from sim.campaign.generators.random_operands import KINDS as OPERANDS
from sim.campaign.generators.random_operands import operands_of
from sim.campaign.kinds import BUILT, KINDS, draw, judge, order
from sim.campaign.models import Models
from sim.campaign.runner import run_campaign
from sim.campaign.shrink import shrink

CORPUS = Path(__file__).parents[2] / "corpus"
KEPT = sorted(CORPUS.glob("*.json"))


def test_a_seed_draws_the_same_cases_in_the_same_order(seed):
    drawn = [
        [line(draw(seed, *case)) for case in itertools.islice(order(("program", "axi")), 24)]
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 24
    assert drawn[0] != [
        line(draw(seed + 1, *case)) for case in itertools.islice(order(("program", "axi")), 24)
    ]
    # What is drawn does not depend on what was drawn before.
    assert line(draw(seed, "program", 3)) == drawn[0][3]


def test_every_kind_has_its_share_in_a_round():
    first = list(itertools.islice(order(tuple(KINDS)), sum(kind.share for kind in KINDS.values())))
    for name, kind in KINDS.items():
        assert [number for each, number in first if each == name] == list(range(kind.share))


def test_random_chips_share_a_chip_and_fit_a_quick_build(seed):
    shared = KINDS["chip"].shared
    cases = [draw(seed, "chip", number) for number in range(2 * shared)]
    chips = [json.dumps(case["chip"]) for case in cases]
    assert len(set(chips[:shared])) == len(set(chips[shared:])) == 1 and chips[0] != chips[shared]


def test_operands_have_what_their_kind_says(seed):
    rng = random.Random(seed)
    case = draw(seed, "program", 0) | {"dims": {"M": 40, "K": 40, "N": 40}, "schedule": {}}
    for dtype in ("bf16", "int8"):
        specs = problem_of(case | {"dtype": dtype, "out": None}).inputs
        for kind in OPERANDS:
            a = operands_of({"kind": kind, "seed": rng.getrandbits(30)}, specs)["A"]
            with np.errstate(invalid="ignore"):
                wide = a.astype(float)
            assert (wide == 0).all() == (kind == "zero")
            if dtype == "int8":
                assert (wide == -128).all() == (kind == "least")
            elif kind == "special":
                assert 0 < (wide != wide).sum() < a.size / 20
            elif kind == "6":
                assert abs(wide).min() >= 2.0**-6 and abs(wide).max() < 2.0**7


def test_memories_pause_by_channel(seed):
    rng = random.Random(seed)
    drawn = [conditions_of(random_memory(rng)) for _ in range(100)]
    assert {sum(stall > 0 for stall in each.stalls) for each in drawn} >= {0, 1, 5}
    assert any(each.latency > 150 for each in drawn) and any(each.latency < 5 for each in drawn)


def test_a_failure_is_made_small(seed):
    case = next(
        case
        for case in (draw(seed, "program", number) for number in range(200))
        if case["dims"]["K"] > 40 and case["schedule"] and case["launches"] > 1
    )

    def fails(fields):
        wrong = fields["dims"]["K"] >= 9
        return Verdict("wrong", ("sum of 9 terms: wrong",) if wrong else ())

    small, verdict = shrink(case, fails(case), fails, smaller_program)
    assert small["dims"] == {"M": 1, "K": 9, "N": 1} and verdict.problems
    assert small["launches"] == 1 and not small["schedule"]
    assert set(small["memory"]["stalls"]) == {0.0} and small["memory"]["jitter"] == 0


def test_a_shrunk_case_fails_in_the_same_way():
    def fails(fields):
        text = "one thing: 1" if fields["n"] > 4 else "another thing: 2"
        return Verdict("wrong", (text,))

    def smaller(fields):
        return iter([{"n": fields["n"] - 1}])

    assert shrink({"n": 9}, fails({"n": 9}), fails, smaller)[0] == {"n": 5}


def test_a_failing_run_prints_the_command_and_keeps_the_case(tmp_path, monkeypatch, seed):
    said = []
    monkeypatch.setattr("sim.campaign.cases.program_case.smaller_program", lambda fields: iter(()))
    monkeypatch.setattr(
        "sim.campaign.runner.judge", lambda fields, models: Verdict("wrong", ("bytes differ",))
    )
    summary = run_campaign(
        seed, 60, kinds=("program",), models=None, corpus=tmp_path, most_failures=1, say=said.append
    )
    assert str(seed) in said[0] and len(summary.failures) == 1
    (kept,) = tmp_path.glob("program-*.json")
    assert load(kept) == summary.failures[0][0]
    assert any(command(load(kept)) in each for each in said)


def test_only_cases_of_the_given_chips_run_on_rtl(monkeypatch, seed):
    met = set()

    def judged(fields, models):
        met.add((chip_of_case(fields), models is not None))
        return Verdict("right")

    monkeypatch.setattr("sim.campaign.runner.judge", judged)
    with Models() as models:
        run_campaign(seed, 1, kinds=BUILT, models=models, chips=["tiny"], say=lambda text: None)
    assert met == {("tiny", True), ("small", False)}


def test_an_internal_fault_is_a_failure(seed):
    verdict = judge({"kind": "program", "chip": "no such chip"}, None)
    assert verdict.problems and "internal fault: KeyError" in verdict.problems[0]


def test_missing_bins_are_named():
    assert missing({}, {"program": 1})[0] == f"refused (0 of {LEAST})"
    met = {name: LEAST for names in BINS.values() for name in names}
    assert missing(met, dict.fromkeys(BINS, 1)) == []
    assert sum(map(len, BINS.values())) >= 40


def test_one_case_is_repeated_by_its_command(capsys, seed):
    case = draw(seed, "program", 0) | {"schedule": {}, "dims": {"M": 5, "K": 6, "N": 7}}
    assert main(["--emulator", "--case", line(case)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == line(case) and told[1] == "right"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--case", "{"], "case must be a JSON object with a kind"),
        (["--case", '{"kind": "none"}'], "kind of a case must be one of"),
        (["--kinds", "program,none"], "kinds must be of"),
        (["--hours", "0"], "hours above 0"),
    ],
)
def test_the_command_refuses_what_it_cannot_run(words, rule, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert rule in capsys.readouterr().err


def test_the_corpus_is_right_without_rtl():
    for path in KEPT:
        case = load(path)
        assert judge(case, None).problems == (), command(case)


@pytest.mark.slow
def test_the_corpus_is_right_on_rtl(heavy):
    with Models() as models:
        for path in KEPT:
            case = load(path)
            assert judge(case, models).problems == (), command(case)


def test_a_kept_case_is_named_after_its_content(tmp_path):
    case = draw(1, "image", 1)
    paths = {keep(tmp_path, case, ["wrong"]) for _ in range(2)}
    assert len(paths) == 1 and load(paths.pop()) == case
    assert case["chip"] in named and set(BUILT) < set(KINDS)
