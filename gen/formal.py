"""Formal proofs of blocks by k-induction or PDR, and bounded checks, with covers and faults.

A harness is a component with free inputs that contains the block as the submodule ``dut``, assumes
the rules of its neighbours and asserts its properties (de Moura, Rueß, Sorea: Bounded model
checking and induction, CAV 2003). Covers must be reachable, and faults injected into the block must
be caught. Yosys does k-induction, ABC does PDR and bounded checks (:mod:`gen.pdr`).
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

from gen.pdr import NETLIST, decide, reached, reached_within, search
from gen.proof import Outcome, Proof
from gen.yosys import run_library

__all__ = ["Property", "prove"]

#: Depth limit of induction and of the search for a cover, in steps.
_STEPS = 24
#: Number of faults injected into a block, and the seed that selects them.
_FAULTS, _SEED = 12, 1
#: Time limit of PDR in seconds.
_SECONDS = 300
#: Script: the design as one module, in which the cells of the block are marked.
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
#: List of all possible faults; a seed of our own selects from it.
_LIST = "mutate -list 1000000 -o faults.txt top/a:block\n"
#: No faults of clocks, nor at a register's output, which would leave its initial value unchanged.
_SPARED = re.compile(r"-port (Q|CLK|INIT|DATA|WR_CLK|RD_(DATA|CLK|ARST|SRST)) ")
_READ = "design -reset\nread_rtlil ready.il\n"
_PREPARE = """\
memory_map
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
    """Property to prove of a block.

    Parameters
    ----------
    block : str
        Name of the block on the command line.
    name : str
        The property in a few words.
    parameters : mapping of str to int
        Parameters of the block for which it is proved.
    harness : callable
        Factory of the harness; its output ``reached`` has one bit per cover.
    method : str
        ``"k-induction"``, if the harness states its invariants, or ``"PDR"``, which finds them.
        ``"bounded"`` proves nothing: it searches the traces of ``cycles`` cycles from reset.
    faults : int
        Faults to inject; none where another size of the same property has them.
    faulty : str
        Modules of the block to inject them into; ``top.dut`` is the block itself.
    cycles : int
        Length of the traces of a bounded check.
    """

    block: str
    name: str
    parameters: Mapping[str, int]
    harness: Callable[[], wiring.Component]
    method: str = "k-induction"
    faults: int = _FAULTS
    faulty: str = "top.dut"
    cycles: int = 0


def prove(property: Property) -> Proof:
    """Prove a property, show that its covers are reachable, and decide each injected fault.

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
        if property.method in ("PDR", "bounded"):
            cycles = property.cycles if property.method == "bounded" else None
            outcome, *caught = _by_pdr(folder, ["", *faults], cycles)
            found = _covers_by_pdr(folder, cycles)
        else:
            (outcome, *caught), found = _by_induction(folder, covers, faults)
            left = [n for n, each in enumerate(caught) if each is Outcome.OPEN]
            for n, decided in zip(left, _by_pdr(folder, [faults[n] for n in left]), strict=True):
                caught[n] = decided
    return Proof(outcome, covers, found, tuple(caught), time.monotonic() - started)


def _faults(folder: Path, property: Property) -> list[str]:
    """Commands that each inject one fault into the block, for the design ``ready.il``."""
    script = _READY.format(block=" ".join(f"{part}/c:*" for part in property.faulty.split()))
    run_library(folder, script + _LIST * bool(property.faults))
    if not property.faults:
        return []
    lines = (folder / "faults.txt").read_text().splitlines()
    possible = [line for line in lines if line and not _SPARED.search(line)]
    return _drawn(possible)[: property.faults]


def _drawn(faults: list[str]) -> list[str]:
    """Faults in random order, one of each cell first, so that wide cells do not dominate."""
    order = random.Random(_SEED).sample(faults, len(faults))
    met: Counter[str] = Counter()
    turns = []
    for fault in order:
        cell = fault.split(" -cell ")[1].split()[0]
        met[cell] += 1
        turns.append((met[cell], fault))
    return [fault for _, fault in sorted(turns, key=lambda turn: turn[0])]


def _by_induction(folder: Path, covers: int, faults: list[str]) -> tuple[list[Outcome], int]:
    """Outcomes of the property and of each fault, and the number of covers reached."""
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


def _by_pdr(folder: Path, faults: list[str], cycles: int | None = None) -> list[Outcome]:
    """Outcome of each fault, by PDR or in traces of so many cycles."""
    if not faults:
        return []
    script = ""
    for number, fault in enumerate(faults):
        script += f"{_READ}{fault}\ndelete -port top/o:*\n{NETLIST}"
        script += f"write_aiger -zinit {number}.aig\n"
    run_library(folder, script)
    names = [f"{number}.aig" for number in range(len(faults))]
    if cycles is None:
        return [decide(folder, each, seconds=_SECONDS) for each in names]
    return [search(folder, each, cycles=cycles, seconds=_SECONDS) for each in names]


def _covers_by_pdr(folder: Path, cycles: int | None) -> int:
    """Number of covers reached, by PDR or in traces of so many cycles."""
    script = f"{_READ}chformal -assert -remove\ndelete -port top/o:* top/w:reached %d\n"
    run_library(folder, f"{script}{NETLIST}write_aiger -zinit covers.aig\n")
    if cycles is None:
        return reached(folder, "covers.aig", seconds=_SECONDS)
    return reached_within(folder, "covers.aig", cycles=cycles, seconds=_SECONDS)
