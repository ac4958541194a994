"""Walks through pages of the guide: every block of a page runs, in order, in one folder.

A block ``python title="FILE"`` is a file that the reader saves; a block ``python`` without a title
is run; a block ``sh`` is typed. A block ``text`` behind one that runs is its output, in which a
line ``...`` stands for any lines. Shell and Python of all pages of a walk are one session of a
shell, so a path that is set stays set.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from docs.tools.figures import ROOT

__all__ = ["Block", "Walk", "blocks_of", "clone_like", "corrected", "fits", "rewritten", "walk"]

_FENCE = re.compile(
    r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILES_OF = re.compile(r"^<!-- files of: (?P<names>[\w., ]+) -->$", re.MULTILINE)
#: A line of output that stands for any lines.
_ANY = "..."
_MARK = "\x01"
#: What a reader of the guide has in the folder in which the commands are given.
_CLONE = (".venv", "Makefile", "requirements.txt", "pyproject.toml", "examples")


@dataclasses.dataclass(frozen=True)
class Block:
    """Block of a page.

    Parameters
    ----------
    page : Path
    kind : str
        ``sh``, ``python`` or ``text``.
    title : str or None
        File that the reader saves.
    text : str
    start : int
        Place of the text in the page.
    output : Block or None
        The output that the page shows.
    """

    page: Path
    kind: str
    title: str | None
    text: str
    start: int
    output: Block | None = None

    @property
    def shown(self) -> Block:
        """The output that the page shows; only of a block that has one."""
        if self.output is None:
            raise ValueError(f"Block of {self.page.name} must have an output")
        return self.output


def blocks_of(page: Path) -> list[Block]:
    """Blocks of a page that run or are saved, each with its output; its needed files first.

    Raises
    ------
    ValueError
        If a block is neither shell, Python nor the output of one.
    """
    content = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for needed in _FILES_OF.findall(content):
        for name in needed.split(","):
            earlier = blocks_of(page.parent / name.strip())
            found += [dataclasses.replace(each, output=None) for each in earlier if each.title]
    end = 0
    for match in _FENCE.finditer(content):
        block = Block(page, match["kind"], match["title"], match["text"], match.start("text"))
        if block.kind == "text":
            before = found[-1] if found else None
            if before is None or before.title or content[end : match.start()].strip():
                raise ValueError(f"Block `text` of {page.name} must follow a block that runs")
            found[-1] = dataclasses.replace(before, output=block)
        elif block.kind in ("sh", "python"):
            found.append(block)
        else:
            raise ValueError(f"Block of {page.name} must be sh, python or text, not {block.kind}")
        end = match.end()
    return found


def _shape(line: str) -> str:
    """Line without its numbers, by which an old line finds its new one."""
    return re.sub(r"\d[\d,.]*", "0", line).rstrip()


def _matched(expected: str, output: str, *, shape: bool) -> list[str] | None:
    """Lines of the output in the places of those expected; None if they do not fit."""

    def same(one: str, other: str) -> bool:
        return _shape(one) == _shape(other) if shape else one.rstrip() == other.rstrip()

    lines, found, at, free = output.splitlines(), [], 0, False
    wanted = expected.splitlines()
    for number, line in enumerate(wanted):
        if line == _ANY:
            found.append(_ANY)
            free = True
            continue
        ends = number == len(wanted) - 1
        places = range(at, len(lines)) if free else range(at, min(at + 1, len(lines)))
        # The last line is the last of the output, wherever its like may stand before.
        hits = [place for place in places if same(line, lines[place])]
        hits = [place for place in hits if place == len(lines) - 1] if ends else hits
        if not hits:
            return None
        found.append(lines[hits[0]].rstrip())
        at, free = hits[0] + 1, False
    return found if free or at == len(lines) else None


def fits(expected: str, output: str) -> bool:
    """Whether an output is what a page shows."""
    return _matched(expected, output, shape=False) is not None


def corrected(expected: str, output: str) -> str:
    """Corrected text of a shown output: the lines shown, if all are there, or else the whole."""
    found = _matched(expected, output, shape=True)
    lines = [line.rstrip() for line in output.splitlines()] if found is None else found
    return "".join(f"{line}\n" for line in lines)


@dataclasses.dataclass(frozen=True)
class Walk:
    """Result of a walk through the blocks of a page.

    Members
    -------
    outputs : tuple of (Block, str)
        Blocks that ran, and their standard output.
    error : str
        Of the block that failed: its last lines; empty if all ran.
    """

    outputs: tuple[tuple[Block, str], ...]
    error: str

    @property
    def wrong(self) -> list[tuple[Block, str]]:
        """Blocks whose output differs from what the page shows."""
        return [
            (block, output)
            for block, output in self.outputs
            if block.output is not None and not fits(block.output.text, output)
        ]


def _script(blocks: Iterable[Block], work: Path) -> str:
    lines = ["set -e -o pipefail"]
    for number, block in enumerate(blocks):
        lines.append(f"printf '\\n{_MARK}{number}\\n'")
        if block.kind == "sh":
            # A folder that a block changes to is left behind it, as its reader does.
            lines += ["tilewright_here=$PWD", block.text, 'cd "$tilewright_here"']
        else:
            file = work / f"{number}.py"
            file.write_text(block.text, encoding="utf-8")
            if block.title:
                lines.append(f"cp '{file}' '{block.title}'")
            else:
                lines.append(f"PYTHONPATH=.${{PYTHONPATH:+:$PYTHONPATH}} python '{file}'")
    return "\n".join(lines) + "\n"


def active_environment() -> dict[str, str]:
    """Environment of this process, with the commands of its Python first, as a reader has them."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def walk(
    pages: Sequence[Path],
    folder: Path,
    work: Path,
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = 3600,
) -> Walk:
    """Follow pages in a folder.

    Parameters
    ----------
    pages : sequence of Path
    folder : Path
        Where the reader stands: a clone, or a folder that looks like one.
    work : Path
        Folder for the blocks.
    environment : mapping or None
        By default `active_environment`.
    seconds : float
        Longest time.
    """
    blocks = [block for page in pages for block in blocks_of(page)]
    done = subprocess.run(
        ["bash", "-c", _script(blocks, work)],
        cwd=folder,
        env=dict(active_environment() if environment is None else environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    parts = re.split(rf"\n{_MARK}(\d+)\n", f"\n{done.stdout.lstrip(chr(10))}")
    outputs = [
        (blocks[int(number)], text) for number, text in zip(parts[1::2], parts[2::2], strict=True)
    ]
    error = ""
    if done.returncode:
        last = blocks[int(parts[-2])] if len(parts) > 2 else blocks[0]
        error = f"{last.page.name}: {last.text}{parts[-1][-2000:]}{done.stderr[-2000:]}"
    return Walk(tuple(outputs), error)


def clone_like(folder: Path) -> Path:
    """Make a folder in which the commands of the guide find what they name; returns it."""
    folder.mkdir(parents=True)
    for name in _CLONE:
        (folder / name).symlink_to(ROOT / name)
    return folder


def rewritten(page: Path) -> str:
    """Text of a page of the guide, with the outputs that its blocks give now.

    Raises
    ------
    ValueError
        If a block fails.
    """
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        done = walk([page], clone_like(work / "clone"), work)
    if done.error:
        raise ValueError(f"Every block of {page.name} must run: {done.error}")
    text = page.read_text(encoding="utf-8")
    # From the end, so that places before stay.
    for block, output in sorted(done.wrong, key=lambda each: -each[0].shown.start):
        shown = block.shown
        new = corrected(shown.text, output)
        text = text[: shown.start] + new + text[shown.start + len(shown.text) :]
    return text
