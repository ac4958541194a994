"""Profiles from the command line: files of a run, also of one that fails; comparison; refusals."""

import json

import pytest

from sim.cli.app import main
from sim.profile.schema import check_profile, parse_profile

RUN = ["run", "matmul", "--config", "tiny", *"--set M=16 --set N=16 --set K=16".split()]
EMULATED = [*RUN, "--backend", "emulator"]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_run_writes_its_profile_and_its_trace(tmp_path, capsys):
    assert main([*EMULATED, "--profile", "a.json", "--trace", "t.json"]) == 0
    profile = parse_profile((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert profile["predicted"] and profile["config"] == "tiny" and profile["status"] == "done"
    trace = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert trace["traceEvents"] and trace["otherData"]["cycles"] == profile["cycles"]
    assert main([*EMULATED, "--set", "slots=1", "--profile", "b.html"]) == 0
    assert (tmp_path / "b.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "VERIFIED" in capsys.readouterr().out


def test_two_profiles_are_compared(tmp_path, capsys):
    assert main([*EMULATED, "--profile", "a.json"]) == 0
    assert main([*EMULATED, "--set", "slots=1", "--profile", "b.json"]) == 0
    assert main(["compare", "a.json", "b.json", "--output", "c.html", "--json", "r.json"]) == 0
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    before, after = report["result"]["cycles"] if "result" in report else report["cycles"]
    assert before < after and f"{before:,} cycles before" in capsys.readouterr().out
    assert (tmp_path / "c.html").stat().st_size > (tmp_path / "a.json").stat().st_size


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [*EMULATED, "--profile", "a.txt"],
            "must be a file that ends in .html, .json or .svg",
        ),
        ([*RUN, "--backend", "golden", "--profile", "a.html"], "not be given with back end golden"),
        ([*RUN, "--backend", "golden", "--trace", "a.json"], "--trace must not be given with"),
        ([*EMULATED, "--profile", "a.json", "--trace", "a.json"], "must be a file of its own"),
        (["compare", "none.json", "none.json", "-o", "c.html"], "A.json must be a file that can"),
        (["compare", "cut.json", "cut.json", "-o", "c.html"], "Profile must be JSON"),
        (["compare", "other.json", "other.json", "-o", "c.html"], "Field format of a profile"),
        (["compare", "other.json", "cut.json", "-o", "cut.json"], "must be a file of its own"),
    ],
)
def test_what_has_no_profile_is_refused(words, message, tmp_path, capsys):
    (tmp_path / "cut.json").write_text('{"format": "tilewright-pro', encoding="utf-8")
    (tmp_path / "other.json").write_text('{"traceEvents": []}', encoding="utf-8")
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "c.html").exists() and not (tmp_path / "a.json").exists()


def test_launches_that_fail_have_a_profile_too(tmp_path, heavy):
    assert main([*RUN, "--max-cycles", "700", "--profile", "hang.json"]) == 4
    assert main([*RUN, "--error-at", "read:30:slverr", "--profile", "error.json"]) == 5
    for status, words in (("hang", "no end: 700 cycles"), ("error", "READ_SLVERR of agcu_0")):
        text = (tmp_path / f"{status}.json").read_text(encoding="utf-8")
        profile = check_profile(json.loads(text))
        assert profile["status"] == status and words in profile["message"]
        assert not profile["predicted"] and profile["report"].get("verified") is None
    assert main([*RUN, "--profile", "done.json"]) == 0
    done = json.loads((tmp_path / "done.json").read_text(encoding="utf-8"))
    assert done["report"]["verified"] and not done["predicted"]
