"""Hostile input ends typed, in one line, at once, and leaves nothing; a fault is seen."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.hostile import KINDS, Case, ended, make

CASES = 30


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    os.symlink("file", "link")
    Path("file.py").write_text("x = 1\n")


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_input_is_refused_in_one_line(kind, seed):
    generator = random.Random(f"{seed} {kind}")
    for _ in range(CASES):
        case = make(kind, generator)
        assert list(ended(case)) == [], case.text


def _prints(text, code=2):
    def act():
        import sys

        print(text, file=sys.stderr)
        return code

    return act


def _writes():
    Path("left").write_text("x")
    return _prints("one line")()


def _works():
    began = time.process_time()
    while time.process_time() < began + LIMIT + 0.01:
        pass
    return _prints("one line")()


LIMIT = 0.05


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (_prints("one line"), None),
        (_prints("internal fault: KeyError: 3"), "internal fault"),
        (_prints("two\nlines"), "code 2"),
        (_prints("one line", 7), "code 7"),
        (_prints("does not fit the chip: None"), "None"),
        (_writes, "files"),
        (_works, " s"),
    ],
)
def test_what_ends_otherwise_is_seen(act, complaint, monkeypatch):
    monkeypatch.setattr("tests.hostile.MOST_SECONDS", LIMIT)
    found = " ".join(ended(Case("planted", act)))
    assert complaint in found if complaint else not found


def test_a_fault_is_passed_on_with_its_case():
    def act():
        raise KeyError("ours")

    with pytest.raises(KeyError) as caught:
        list(ended(Case("planted", act)))
    assert caught.value.__notes__ == ["planted"]
