"""JSON reports of commands, each run once."""

from __future__ import annotations

import functools
import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

from sim.cli.app import main

__all__ = ["report"]


@functools.cache
def report(command: str) -> Any:
    """JSON report of a command of ours.

    Raises
    ------
    ValueError
        If it is not ``tilewright …``, or does not end with exit code 0.
    """
    program, *words = shlex.split(command)
    if program != "tilewright":
        raise ValueError(f"Command must begin with tilewright, not {program!r}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        code = main([*words, "--json", str(file)])
        if code:
            raise ValueError(f"{command} must end with exit code 0, not {code}")
        return json.loads(file.read_text(encoding="utf-8"))
