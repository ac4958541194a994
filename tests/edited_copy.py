"""A copy of the project's packages with one edit, and programs that run in it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hw", "gen", "sw", "sim", "tilewright")


def edited_copy(folder, path, pattern, text):
    """Copy packages and pages, and replace the one place of a file that a pattern finds."""
    for name in (*PACKAGES, "docs"):
        skipped = shutil.ignore_patterns("__pycache__", "build")
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    file = folder / path
    edited, count = re.subn(
        pattern, lambda _: text, file.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert count == 1, f"{pattern} is in {path} {count} times"
    file.write_text(edited, encoding="utf-8")


def python_in(folder, *words):
    """Lines that Python prints in that copy."""
    run = subprocess.run(
        [sys.executable, "-B", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()
