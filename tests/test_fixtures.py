"""The fixtures of every test: the lock keeps heavy work apart, the must-show report is honest."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MUST_SHOW = tomllib.loads((ROOT / "tests" / "must_show.toml").read_text())["tests"]

HEAVY = """
import os, time
import pytest

@pytest.mark.parametrize("part", range(4))
def test_work(heavy, heavy_lock, part):
    with heavy_lock():
        os.mkdir("busy")
        time.sleep(0.1)
        os.rmdir("busy")
"""

MODELS = """
import pytest
from sim.native import chip_model

def test_light():
    chip_model.build_parts([], "")

def test_heavy(heavy):
    assert chip_model.build_parts.__module__ == "sim.native.archive"

@pytest.mark.slow
def test_slow():
    assert chip_model.build_parts.__module__ == "sim.native.archive"
"""

EVIDENCE = """
import pytest

@pytest.mark.must("slice-b", goal="equal")
def test_good(figure, seed):
    figure(f"100 of 100, seed {seed}")

@pytest.mark.must("slice-c", goal="at most 5")
@pytest.mark.parametrize("cycles", [3, 7, 4])
def test_bad(figure, cycles):
    figure(str(cycles))
    assert cycles <= 5

@pytest.fixture
def broken():
    raise OSError("no model")

@pytest.mark.must("slice-d", goal="it builds")
def test_never_called(broken):
    pass

@pytest.mark.must("slice-e", goal="both")
@pytest.mark.parametrize("part", ["one", "two"])
def test_in_parts(figure, part):
    figure(part)

@pytest.mark.must("slice-f", goal="three")
@pytest.mark.parametrize("part", ["one", "two"])
def test_of_which_one_is_lost(figure, part):
    figure(part)
"""


@pytest.fixture
def project(tmp_path):
    """Function that makes a project of one test file, with our fixtures."""

    def make(text):
        (tmp_path / "tests").mkdir()
        for name in ("conftest.py", "few_cases.py"):
            shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
        # It names a plugin with models of our hardware, of which these projects have none.
        (tmp_path / "tests" / "hw").mkdir()
        (tmp_path / "tests" / "hw" / "shared_models.py").touch()
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
        needed = dict.fromkeys(MUST_SHOW, 1) | {"slice-e": 2, "slice-f": 3}
        lines = [f"{name} = {count}" for name, count in needed.items()]
        (tmp_path / "tests" / "must_show.toml").write_text("\n".join(["[tests]", *lines, ""]))
        (tmp_path / "tests" / "test_it.py").write_text(text)
        return tmp_path

    return make


def pytest_in(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


def test_heavy_tests_never_overlap_within_a_run_or_between_two(project):
    folder = project(HEAVY)
    both = [pytest_in(folder, "-n", "2", "--dist", "loadgroup"), pytest_in(folder)]
    for run in both:
        said, _ = run.communicate(timeout=60)
        assert run.returncode == 0 and "4 passed" in said, said


def test_one_worker_runs_every_heavy_test(project):
    """So that a model that tests share is emitted, built and opened once."""
    run = pytest_in(project(HEAVY), "-vv", "-n", "2", "--dist", "loadgroup")
    said, _ = run.communicate(timeout=60)
    workers = re.findall(r"^\[(gw\d)\].*PASSED.*test_work", said, re.MULTILINE)
    assert len(workers) == 4 and len(set(workers)) == 1, said


def test_without_the_lock_the_same_tests_do_overlap(project):
    unlocked = HEAVY.replace("heavy, heavy_lock, ", "").replace("with heavy_lock():", "if True:")
    folder = project(unlocked)
    both = [pytest_in(folder), pytest_in(folder)]
    assert any(run.wait(timeout=60) != 0 for run in both)
    for run in both:
        run.stdout.close()


def test_a_light_test_builds_no_model_of_a_chip(project):
    said, _ = pytest_in(project(MODELS)).communicate(timeout=60)
    assert "1 failed, 2 passed" in said and "must use `heavy`, or be slow" in said, said


@pytest.mark.parametrize("workers", [[], ["-n", "2", "--dist", "loadgroup"]])
def test_the_must_show_report_has_every_line_and_the_command_that_repeats_it(project, workers):
    folder = project(EVIDENCE)
    run = pytest_in(folder, "-m", "must", "--seed-base=7", "--must-report=out.json", *workers)
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 1
    rows = {row["id"]: row for row in json.loads((folder / "out.json").read_text())}
    assert list(rows) == list(MUST_SHOW)
    good, bad, broken = rows["slice-b"], rows["slice-c"], rows["slice-d"]
    assert good["met"] and good["goal"] == "equal" and good["figure"].startswith("100 of 100")
    assert not bad["met"] and bad["figure"] == "7"
    assert bad["command"] == (
        ".venv/bin/python -m pytest --seed-base=7 'tests/test_it.py::test_bad[7]'"
    )
    assert bad["command"] in said
    assert not broken["met"]
    assert rows["slice-a"]["met"] is False and rows["slice-a"]["command"] is None
    assert rows["slice-e"]["met"] and set(rows["slice-e"]["figure"].split("; ")) == {"one", "two"}
    assert rows["slice-e"]["command"].endswith("'tests/test_it.py'")
    durations = json.loads((folder / "build" / "test-durations.json").read_text())
    assert len(durations) == 9
    # Each passes; there were to be three.
    assert rows["slice-f"]["met"] is False
    assert (rows["slice-f"]["tests"], rows["slice-f"]["needed"]) == (2, 3)
    assert "slice-f   NOT MET  2 of 3 tests; " in said
    assert (rows["slice-e"]["tests"], rows["slice-c"]["tests"]) == (2, 3)


@pytest.mark.parametrize(("chosen", "count"), [("not slow", 2), ("not hour", 9), ("", 9)])
def test_fewer_random_cases_are_drawn_only_where_slow_tests_are_left_out(project, chosen, count):
    folder = project(f"def test_a(draws): assert draws(2, 9) == {count}\n")
    said, _ = (run := pytest_in(folder, "-m", chosen, "-n", "1")).communicate(timeout=60)
    assert run.returncode == 0, said


def test_a_seed_depends_on_the_base_and_on_the_test_alone(project):
    text = (
        "import pytest\n"
        "@pytest.mark.must('slice-a', goal='')\n"
        "def test_a(seed, figure): figure(str(seed))\n"
        "@pytest.mark.must('slice-b', goal='')\n"
        "def test_b(seed, figure): figure(str(seed))\n"
    )
    folder = project(text)
    figures = []
    for base in ("1", "1", "2"):
        run = pytest_in(folder, f"--seed-base={base}", "--must-report=out.json")
        said, _ = run.communicate(timeout=60)
        # Both pass; the nine lines without a test alone make the run fail.
        assert "2 passed" in said and run.returncode == 1
        rows = json.loads((folder / "out.json").read_text())
        figures.append((rows[0]["figure"], rows[1]["figure"]))
    assert figures[0] == figures[1]
    assert len({*figures[0], *figures[2]}) == 4
