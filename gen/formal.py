"""Formal proofs of blocks: k-induction or PDR, covers to reach, faults that must be caught.

A harness is a component whose inputs are free, which contains the block as the submodule ``dut``,
assumes what its neighbours keep to and asserts what it promises (de Moura, Rueß, Sorea: Bounded
model checking and induction, CAV 2003). Yosys does k-induction, ABC does PDR (:mod:`gen.pdr`).
"""

import dataclasses
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import amaranth.back.rtlil as rtlil
from amaranth.lib import wiring

from gen.pdr import NETLIST, decide, reached
from gen.proof import Outcome, Proof
from gen.yosys import run_library

__all__ = ["Property", "prove"]

#: Steps after which induction, and the search for a cover, give up.
_STEPS = 24
#: Faults put into a block, and the seed that chooses them.
_FAULTS, _SEED = 12, 1
#: Seconds after which PDR gives up.
_SECONDS = 300
#: The design of one module, in which cells of the block are marked.
_READY = """\
read_rtlil harness.il
hierarchy -top top
proc
setattr -set block 1 {block}
flatten
opt_clean
opt -full
memory_collect
write_rtlil ready.il
"""
#: Every fault there is: fewer are picked by a seed of our own.
_LIST = "mutate -list 1000000 -o faults.txt top/a:block\n"
#: No faults of clocks, nor behind a register, whose first value they would not change.
_SPARED = re.compile(r"-port (Q|CLK|INIT|DATA|WR_CLK|RD_(DATA|CLK|ARST|SRST)) ")
_READ = "design -reset\nread_rtlil ready.il\n"
_PREPARE = """\
opt_clean
chformal -cover -remove
chformal -lower
async2sync
opt -fast
"""
_INDUCTION = "sat -tempinduct -prove-asserts -set-assumes -set rst 0 -maxsteps {steps} top\n"
_SEARCH = "sat -tempinduct-baseonly -set-assumes -set rst 0 -maxsteps {steps}"
_COVER = f"{_SEARCH} -prove reached[{{bit}}] 0 top\n"
_ENDED = re.compile(
    r"SAT temporal induction proof finished - (model found)"
    r"|(Induction step proven: SUCCESS!)|(Reached maximum number of time steps)"
)


@dataclasses.dataclass(frozen=True)
class Property:
    """What is proved of a block.

    Parameters
    ----------
    block : str
        Name of the block, as a user gives it.
    name : str
        The property in a few words.
    parameters : mapping of str to int
        Parameters of the block at which it is proved.
    harness : callable
        Makes the harness; its output ``reached`` has a bit for each situation that must occur.
    method : str
        ``"k-induction"``, of a harness that states its invariants, or ``"PDR"``, which finds them.
    faults : int
        Faults to put into the block; none where the same property has them at another size.
    faulty : str
        Modules of the block to put them into; ``top.dut`` is the block itself.
    """

    block: str
    name: str
    parameters: Mapping[str, int]
    harness: Callable[[], wiring.Component]
    method: str = "k-induction"
    faults: int = _FAULTS
    faulty: str = "top.dut"


def prove(property: Property) -> Proof:
    """Prove a property, show that its covers are reached, and decide each fault.

    A fault that induction leaves open is decided by PDR.

    Raises
    ------
    MissingToolError
        If yosys is not installed.
    RuntimeError
        If yosys or ABC fails.
    """
    started = time.monotonic()
    harness: Any = property.harness()
    covers = len(harness.reached)
    with tempfile.TemporaryDirectory(prefix="tilewright-proof.") as name:
        folder = Path(name)
        (folder / "harness.il").write_text(rtlil.convert(harness, name="top", emit_src=False))
        faults = _faults(folder, property)
        if property.method == "PDR":
            outcome, *caught = _by_pdr(folder, ["", *faults])
            found = _covers_by_pdr(folder)
        else:
            (outcome, *caught), found = _by_induction(folder, covers, faults)
            left = [n for n, each in enumerate(caught) if each is Outcome.OPEN]
            for n, decided in zip(left, _by_pdr(folder, [faults[n] for n in left]), strict=True):
                caught[n] = decided
    return Proof(outcome, covers, found, tuple(caught), time.monotonic() - started)


def _faults(folder: Path, property: Property) -> list[str]:
    """Commands that each put a fault into the block, of the design that is now ``ready.il``."""
    script = _READY.format(block=" ".join(f"{part}/c:*" for part in property.faulty.split()))
    run_library(folder, script + _LIST * bool(property.faults))
    if not property.faults:
        return []
    lines = (folder / "faults.txt").read_text().splitlines()
    possible = [line for line in lines if line and not _SPARED.search(line)]
    return _drawn(possible)[: property.faults]


def _drawn(faults: list[str]) -> list[str]:
    """Faults in random order, first one of each cell: wide cells have no more than control."""
    order = random.Random(_SEED).sample(faults, len(faults))
    met: Counter[str] = Counter()
    turns = []
    for fault in order:
        cell = fault.split(" -cell ")[1].split()[0]
        met[cell] += 1
        turns.append((met[cell], fault))
    return [fault for _, fault in sorted(turns, key=lambda turn: turn[0])]


def _by_induction(folder: Path, covers: int, faults: list[str]) -> tuple[list[Outcome], int]:
    """Outcomes of the property and with each fault, and how many covers are reached."""
    induction = f"{_PREPARE}{_INDUCTION.format(steps=_STEPS)}"
    script = f"{_READ}{induction}"
    script += "".join(_COVER.format(steps=_STEPS, bit=bit) for bit in range(covers))
    script += "".join(f"{_READ}{fault}\n{induction}" for fault in faults)
    log = run_library(folder, script)
    names = tuple(Outcome)
    outcomes = [names[each.lastindex - 1] for each in _ENDED.finditer(log) if each.lastindex]
    if len(outcomes) != 1 + covers + len(faults):
        raise RuntimeError(f"yosys ended {len(outcomes)} of {1 + covers + len(faults)} proofs")
    searches = outcomes[1 : 1 + covers]
    mutants = outcomes[1 + covers :]
    return [outcomes[0], *mutants], searches.count(Outcome.COUNTEREXAMPLE)


def _by_pdr(folder: Path, faults: list[str]) -> list[Outcome]:
    """Outcome with each fault."""
    if not faults:
        return []
    script = ""
    for number, fault in enumerate(faults):
        script += f"{_READ}{fault}\ndelete -port top/o:*\n{NETLIST}"
        script += f"write_aiger -zinit {number}.aig\n"
    run_library(folder, script)
    return [decide(folder, f"{n}.aig", seconds=_SECONDS) for n in range(len(faults))]


def _covers_by_pdr(folder: Path) -> int:
    """How many covers are reached."""
    script = f"{_READ}chformal -assert -remove\ndelete -port top/o:* top/w:reached %d\n"
    run_library(folder, f"{script}{NETLIST}write_aiger -zinit covers.aig\n")
    return reached(folder, "covers.aig", seconds=_SECONDS)
