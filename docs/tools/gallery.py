"""Pictures of the gallery: each is drawn by the command that stands above it in its page.

A picture of ``docs/guide/gallery.md`` is shown from ``docs/pictures``, and written by the block of
shell before it to ``build/pictures``. The site draws all of them; those that ``COMMITTED`` names
are in the project, too, for the pages that show them outside of the site.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from docs.tools.figures import ROOT
from docs.tools.walkthrough import active_environment

__all__ = ["COMMITTED", "GALLERY", "PICTURES", "commands", "draw"]

GALLERY = "docs/guide/gallery.md"
#: Folder of the pictures, as the pages link to it.
PICTURES = "docs/pictures"
#: Pictures of the README.
COMMITTED = ("attention_profile.svg", "attention_map.svg")
_PART = re.compile(r"^```sh\n(?P<text>.*?)^```$|\]\(\.\./pictures/(?P<name>[\w.]+)\)", re.M | re.S)


def commands(text: str | None = None) -> dict[str, str]:
    """Block of shell that writes each picture (or page of a profile), by its file.

    Parameters
    ----------
    text : str or None
        The page; by default the gallery.

    Raises
    ------
    ValueError
        If no block before a picture writes it.
    """
    if text is None:
        text = (ROOT / GALLERY).read_text(encoding="utf-8")
    block = ""
    found: dict[str, str] = {}
    for part in _PART.finditer(text):
        if part["text"]:
            block = part["text"]
        elif "build/pictures" not in block:
            raise ValueError(f"Picture {part['name']} must follow a command that writes it")
        else:
            found[part["name"]] = block
    return found


def draw(folder: Path, names: Iterable[str] | None = None) -> dict[str, Path]:
    """Run the blocks that write these pictures, below a folder; returns the files.

    Parameters
    ----------
    folder : Path
        Where the commands run; they find the examples there.
    names : iterable of str or None
        Pictures; by default all.

    Raises
    ------
    ValueError
        If a command fails, or its picture is not there afterwards.
    """
    blocks = commands()
    wanted = list(blocks if names is None else names)
    folder.mkdir(parents=True, exist_ok=True)
    examples = folder / "examples"
    if not examples.exists():
        examples.symlink_to(ROOT / "examples")
    for block in dict.fromkeys(blocks[name] for name in wanted):
        done = subprocess.run(
            ["bash", "-e", "-c", block],
            cwd=folder,
            env=active_environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ValueError(f"Command of the gallery failed: {block}{done.stdout}{done.stderr}")
    files = {name: folder / "build" / "pictures" / name for name in wanted}
    for name, file in files.items():
        if not file.is_file():
            raise ValueError(f"Picture {name} must be written by the block before it")
    return files
