"""Shared library of a single module: its Verilator model and a C++ harness."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from gen.lint import waivers
from sim.cache import cached
from sim.native.build import ANYWHERE, MAKE, require_build_tools, verilate
from sim.progress import Progress

__all__ = ["build_library"]

_FLAGS = (
    "--cc --exe --build --no-timing --x-initial unique --default-language 1364-2005 "
    "-O3 --build-jobs 2"
).split()


_CFLAGS = "-fPIC -std=c++17"
#: Most of the code runs for some seconds only, and what Verilator calls slow once. -Og takes a
#: quarter less to compile than -O1, and runs hardly longer; at -O0 runs take five times as long.
_MAKE = f"{MAKE} OPT_FAST=-Og OPT_SLOW=-O0 OPT_GLOBAL=-O0"


def build_library(
    verilog: str,
    top: str,
    harness: str,
    *,
    options: Sequence[str] = (),
    use_cache: bool = True,
    progress: Progress | None = None,
) -> tuple[Path, bool]:
    """Build a shared library from a Verilator model and its C++ harness.

    Parameters
    ----------
    verilog, top : str
        The design and its top module.
    harness : str
        C++ source; it includes ``Vtop.h``.
    options : sequence of str
        Additional Verilator options.
    use_cache : bool
        Whether a cached build of the same content may be used.
    progress : Progress, optional

    Returns
    -------
    path, hit : Path, bool
        The library, and whether it was a cache hit.

    Raises
    ------
    MissingToolError
        If Verilator, g++, make or perl is missing.
    RuntimeError
        If the build fails; the message ends with the tool's last lines.
    """
    flags = [*_FLAGS, *options]
    content = [verilog, top, harness, " ".join([*flags, _MAKE, _CFLAGS]), waivers()]
    shown = progress or Progress()

    def make(work: Path) -> None:
        require_build_tools()
        build = work / "build"
        build.mkdir()
        (build / "design.v").write_text(verilog)
        (build / "harness.cpp").write_text(harness)
        words = [
            *flags,
            *("design.v", "harness.cpp"),
            *("--top-module", top, "--prefix", "Vtop", "-Mdir", "."),
            *("-CFLAGS", _CFLAGS, "-LDFLAGS", "-shared", "-o", "libmodel.so"),
            *("-MAKEFLAGS", f"{_MAKE} {ANYWHERE}"),
        ]
        with shown.step(f"Verilator: {top}"):
            verilate(words, build, top)
        os.replace(build / "libmodel.so", work / "libmodel.so")
        shutil.rmtree(build)

    directory, hit = cached(
        "verilator",
        content,
        "libmodel.so",
        make,
        name=top,
        use_cache=use_cache,
        progress=shown,
    )
    return directory / "libmodel.so", hit
