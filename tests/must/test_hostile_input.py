"""edge-c: hostile command lines, configurations, schedules, files of arrays and API calls."""

import collections
import os
import random
import time
from pathlib import Path

import pytest

from tests.hostile import KINDS, MOST_SECONDS, ended, make

#: Of each kind.
CASES = 450
GOAL = (
    "≥ 2,000 hostile command lines, TOMLs, schedules, npz files, API calls: typed, one line, < 2 s"
)


@pytest.mark.slow
@pytest.mark.must("edge-c", goal=GOAL)
def test_hostile_input_ends_typed_in_one_line_and_leaves_nothing(
    tmp_path, monkeypatch, seed, figure
):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    os.symlink("file", "link")
    Path("file.py").write_text("x = 1\n")
    counts = collections.Counter[str]()
    longest = 0.0
    for kind in KINDS:
        generator = random.Random(f"{seed} {kind}")
        for _ in range(CASES):
            case = make(kind, generator)
            began = time.process_time()
            assert list(ended(case)) == [], case.text
            longest = max(longest, time.process_time() - began)
            counts[kind] += 1
    assert counts.total() >= 2_000 and longest < MOST_SECONDS
    figure(f"{counts.total():,} cases of {len(KINDS)} kinds: 0 faults, longest {longest:.1f} s CPU")
