"""Property-directed reachability (PDR) and bounded checks by ABC, on netlists that yosys writes.

ABC finds the inductive invariant that k-induction needs as input (Bradley: SAT-based model checking
without unrolling, VMCAI 2011; Eén, Mishchenko, Brayton: Efficient implementation of property
directed reachability, FMCAD 2011). The program is the one in the pinned library of yosys.
"""

import importlib.util
import re
import subprocess
from pathlib import Path

from gen.proof import Outcome
from gen.tools import require_package

__all__ = ["NETLIST", "decide", "reached", "reached_within", "search"]

#: Passes that turn a design with assertions and assumptions into a netlist for `write_aiger`.
NETLIST = """\
flatten
opt_clean
chformal -cover -remove
async2sync
chformal -lower
delete -port top/rst
setundef -undriven -zero
opt_clean
memory_map
opt -full
techmap
opt -fast
setundef -zero
dfflegalize -cell $_DFF_P_ 01
aigmap
"""
#: Merges registers that are always equal.
_SMALLER = "scleanup; lcorr; scorr; dc2; scorr; "
_ASSERTED = re.compile(r"[Oo]utput +(\d+) .*?asserted in frame")
#: No counterexample in so many frames, of which the first is the reset state.
_SEARCHED = re.compile(r"No output asserted in (\d+) frames")


def _abc(folder: Path, commands: str) -> str:
    """Output of ABC for commands that run in a folder."""
    require_package("pyosys", where="prove")
    library = importlib.util.find_spec("pyosys")
    if library is None or library.origin is None:
        raise RuntimeError("pyosys must be a package with a folder of its own")
    program = str(Path(library.origin).parent / "yosys-abc")
    done = subprocess.run(
        [program, "-c", commands], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode or "cmd error" in done.stdout or "failed" in done.stdout:
        raise RuntimeError(f"ABC failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _reduced(folder: Path, name: str, engine: str) -> str:
    """Output of ABC for an engine that runs on the reduced netlist.

    An easy property reduces to no register at all, on which the engines fail; then it runs on the
    netlist as it is.
    """
    said = ""
    for first in (_SMALLER, ""):
        said = _abc(folder, f"read_aiger {name}; fold; {first}{engine}")
        if "is combinational" not in said:
            break
    return said


def decide(folder: Path, name: str, *, seconds: int) -> Outcome:
    """Whether the assertions of a netlist hold in every state that is reachable from reset.

    Parameters
    ----------
    folder : Path
    name : str
        Of the netlist file.
    seconds : int
        Time limit.

    Returns
    -------
    Outcome
    """
    said = _reduced(folder, name, f"orpos; pdr -T {seconds}")
    if _ASSERTED.search(said):
        return Outcome.COUNTEREXAMPLE
    return Outcome.PROVED if "Property proved" in said else Outcome.OPEN


def reached(folder: Path, name: str, *, seconds: int) -> int:
    """Outputs of a netlist that are 1 in some cycle, each shown by a trace from reset."""
    said = _abc(folder, f"read_aiger {name}; fold; pdr -a -T {seconds}")
    return len({int(number) for number in _ASSERTED.findall(said)})


def search(folder: Path, name: str, *, cycles: int, seconds: int) -> Outcome:
    """Whether the assertions of a netlist hold in the first cycles after reset.

    Parameters
    ----------
    folder : Path
    name : str
        Of the netlist file.
    cycles : int
        Length of the traces searched.
    seconds : int
        Time limit.

    Returns
    -------
    Outcome
        ``BOUNDED``: no trace of that length violates an assertion; nothing is said of longer ones.
    """
    said = _reduced(folder, name, f"orpos; bmc3 -F {cycles} -T {seconds}")
    if _ASSERTED.search(said):
        return Outcome.COUNTEREXAMPLE
    searched = _SEARCHED.search(said)
    complete = searched is not None and int(searched[1]) >= cycles
    return Outcome.BOUNDED if complete else Outcome.OPEN


def reached_within(folder: Path, name: str, *, cycles: int, seconds: int) -> int:
    """Outputs of a netlist that are 1 in some cycle of the first ones after reset."""
    said = _reduced(folder, name, f"bmc3 -a -F {cycles} -T {seconds}")
    return len({int(number) for number in _ASSERTED.findall(said)})
