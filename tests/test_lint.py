"""The linters: `make test` runs them beside the other tests, as mypy occupies one core alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("words", ["mypy", "ruff check", "ruff format --check"])
def test_a_linter_has_nothing_to_say(words):
    command = [sys.executable, "-m", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
