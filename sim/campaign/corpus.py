"""Corpus of failing cases, one JSON file per case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sim.campaign.case import Fields, line
from sim.files import write_whole

__all__ = ["keep", "load"]


def keep(folder: Path, fields: Fields, problems: Iterable[str]) -> Path:
    """Store a failing case; the file name is derived from the content.

    Parameters
    ----------
    folder : Path
    fields : mapping
    problems : iterable of str
        Failures when it was found.
    """
    digest = hashlib.sha256(line(fields).encode()).hexdigest()[:12]
    path = folder / f"{fields['kind']}-{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"found": list(problems), "case": fields}, indent=1, sort_keys=True)
    write_whole(path, text + "\n")
    return path


def load(path: Path) -> dict[str, Any]:
    """Load the case of a file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["case"]
    return found
