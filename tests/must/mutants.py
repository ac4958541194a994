"""Mutants of the source: an edit in a copy of the tree, and the test nearest to it."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("hw", "gen", "sim", "sw", "tests", "tilewright", "pyproject.toml")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """An edit of a file, whose text ``before`` stands there once, and the test that must fail."""

    path: str
    before: str
    after: str
    test: str


def copy_of_tree(folder: Path) -> Path:
    """A copy of the tree, in which a mutant can be planted."""
    for name in _COPIED:
        place = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        place(ROOT / name, folder / name)
    # Its tests of RTL wait for those of this clone.
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "heavy.lock").touch()
    (folder / "build").mkdir()
    (folder / "build" / "heavy.lock").symlink_to(ROOT / "build" / "heavy.lock")
    return folder


def _outcome(folder: Path, test: str) -> tuple[int, str]:
    """How a test ends in a copy of the tree: pytest's exit code, and what it says."""
    # Uncaptured, so that the words of a model that ends the process are not lost.
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-s", test]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    return done.returncode, done.stdout + done.stderr


def require_killed(mutant: Mutant, copy: Path) -> None:
    """Require that the mutant's test passes on the text as it is, and fails with the edit.

    An assertion of the design that ends the model's process counts as a failure.
    """
    source = (ROOT / mutant.path).read_text()
    assert source.count(mutant.before) == 1, f"{mutant.before} in {mutant.path}"
    healthy, said = _outcome(copy, mutant.test)
    assert healthy == 0, said
    (copy / mutant.path).write_text(source.replace(mutant.before, mutant.after))
    try:
        killed, said = _outcome(copy, mutant.test)
    finally:
        (copy / mutant.path).write_text(source)
    # Tests ran, and one failed: an error before the first is no kill.
    assert killed == 1 and ("1 failed" in said or "Verilog $stop" in said), said
