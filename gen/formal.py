"""Formal proofs of blocks: k-induction by yosys, covers to reach, faults that must fail.

A harness is a component whose inputs are free, which contains the block as the submodule ``dut``,
assumes what its neighbours keep to and asserts what it promises (de Moura, Rueß, Sorea: Bounded
model checking and induction, CAV 2003).
"""

import dataclasses
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import amaranth.back.rtlil as rtlil
from amaranth.lib import wiring

from gen.yosys import require_yosys, run_script

__all__ = ["Proof", "Property", "prove"]

#: Steps after which induction, and the search for a cover, give up.
_STEPS = 24
#: Faults put into a block, and the seed that chooses them.
_FAULTS, _SEED = 12, 1
_PREPARE = """\
flatten
opt_clean
chformal -cover -remove
chformal -lower
async2sync
opt -fast
"""
_INDUCTION = "sat -tempinduct -prove-asserts -set-assumes -set rst 0 -maxsteps {steps} top\n"
_SEARCH = "sat -tempinduct-baseonly -set-assumes -set rst 0 -maxsteps {steps}"
_COVER = f"{_SEARCH} -prove reached[{{bit}}] 0 top\n"
_OUTCOME = re.compile(
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
    """

    block: str
    name: str
    parameters: Mapping[str, int]
    harness: Callable[[], wiring.Component]


@dataclasses.dataclass(frozen=True)
class Proof:
    """Outcome of a proof.

    Members
    -------
    proved : bool
        Every assertion holds in every reachable state.
    covers, reached : int
        Situations asked for, and those a trace from reset shows.
    faults, caught : int
        Faults put into the block, and those for which the proof fails. One that is not caught
        may be harmless.
    seconds : float
    """

    proved: bool
    covers: int
    reached: int
    faults: int
    caught: int
    seconds: float

    @property
    def met(self) -> bool:
        """The property is proved, not vacuously, and by a check that can fail."""
        return self.proved and self.reached == self.covers and self.caught > 0


def _outcomes(log: str) -> list[str]:
    """How each `sat` of a log ended: a counterexample, a proof, or neither."""
    names = ("model", "proved", "open")
    return [names[match.lastindex - 1] for match in _OUTCOME.finditer(log) if match.lastindex]


def prove(property: Property) -> Proof:
    """Prove a property, show that its covers are reached and that faults are caught.

    Raises
    ------
    MissingToolError
        If yosys is not installed.
    RuntimeError
        If yosys fails.
    """
    require_yosys()
    started = time.monotonic()
    harness: Any = property.harness()
    covers = len(harness.reached)
    with tempfile.TemporaryDirectory(prefix="tilewright-proof.") as name:
        folder = Path(name)
        (folder / "harness.il").write_text(rtlil.convert(harness, name="top", emit_src=False))
        run_script(
            folder,
            "read_rtlil harness.il\nhierarchy -top top\nproc\nwrite_rtlil ready.il\n"
            f"mutate -list {_FAULTS} -seed {_SEED} -o faults.txt top.dut\n",
        )
        read = "design -reset\nread_rtlil ready.il\n"
        faults = [line for line in (folder / "faults.txt").read_text().splitlines() if line]
        prepared = f"{read}{_PREPARE}"
        script = prepared + _INDUCTION.format(steps=_STEPS)
        for bit in range(covers):
            script += _COVER.format(steps=_STEPS, bit=bit)
        for fault in faults:
            script += f"{read}{fault}\n{_PREPARE}{_INDUCTION.format(steps=_STEPS)}"
        outcomes = _outcomes(run_script(folder, script))
    if len(outcomes) != 1 + covers + len(faults):
        raise RuntimeError(f"yosys ended {len(outcomes)} of {1 + covers + len(faults)} proofs")
    return Proof(
        proved=outcomes[0] == "proved",
        covers=covers,
        reached=outcomes[1 : 1 + covers].count("model"),
        faults=len(faults),
        caught=outcomes[1 + covers :].count("model"),
        seconds=time.monotonic() - started,
    )
