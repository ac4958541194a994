"""Fenced blocks of the pages, and how they are run as a reader would run them."""

import contextlib
import dataclasses
import os
import re
import runpy
import subprocess
from pathlib import Path

from tests.unelaborated import unelaborated

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
#: The guide is followed page by page: docs.tools.walkthrough.
GUIDE = sorted((ROOT / "docs" / "guide").rglob("*.md"))
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Fence:
    """Block of a page: its kind, its text, and where it begins."""

    page: Path
    line: int
    kind: str
    text: str

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def fences(kind=None):
    """Blocks of every page, or those of one kind."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Fence(page, line, match[1], match[2]))
    return [fence for fence in found if kind in (None, fence.kind)]


def run_in(folder, words, **environment):
    """Output of a process in a folder, with the project's commands first in PATH."""
    # A make that runs this test must not pass its flags on.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{kept['PATH']}"
    done = subprocess.run(
        words,
        cwd=folder,
        env=kept | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_python(fence, folder):
    """Output of a block of Python, pasted into a file."""
    file = folder / "example.py"
    file.write_text(fence.text)
    return run_in(folder, ["python", file.name])


def run_python_here(fence, folder):
    """Run a block of Python as a file, in this process."""
    file = folder / "example.py"
    file.write_text(fence.text)
    with contextlib.chdir(folder):
        names = runpy.run_path(str(file), run_name="__main__")
    unelaborated(list(names.values()))


def run_shell(fence, folder):
    """Output of a block of shell, beside the environment and the Makefile that it may name."""
    for name in (".venv", "Makefile", "requirements.txt", "pyproject.toml", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return run_in(folder, ["bash", "-e", "-o", "pipefail", "-c", fence.text])
