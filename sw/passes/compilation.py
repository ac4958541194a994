"""State of one compilation: inputs, and the results of the passes over the whole kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format
from sw.ir.program import Program
from sw.language import Kernel, Schedule
from sw.parts.part import Division
from sw.parts.step import FormerSteps
from sw.passes.pass_driver import later
from sw.stages.refusal import Refusals

__all__ = ["Compilation"]


@dataclasses.dataclass
class Compilation:
    """Inputs of a compilation, and the results of its passes up to the division into parts.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims : mapping of str to int
    dtype, out : Format, mapping of str to Format, or None
    options : mapping of str to value
    schedule : Schedule
    given : Program or None
        The program, traced and checked, if the caller has it.
    chains : bool
        Whether lane programs may stand behind a product, in PCUs that its grid then lacks.
    printed : str
        Why a softmax over blocks keeps its printed form; empty if none has to.
    rolls : bool
        Whether stores that compute the same may become a loop.
    turns : bool
        Whether columns that begin where no transfer can are rows of transposed tensors.

    Members
    -------
    program, summed, lean : Program
        After `check`, `online` and `carry`.
    held : frozenset of str
        Names of tiles of local tensors, which stay on the chip.
    unfused : tuple of str
        Why loops that look like a softmax over blocks are none.
    division : Division
        The parts of the kernel.
    parted : tuple of str
        Why parts of earlier divisions were divided again.
    together : bool
        Whether an iteration may take several points beside one another.
    failures : dict of str to list of BadInputError
        Alternatives that failed, by pass.
    refusals : Refusals
        Why no image computes the programs that `divide` has asked for.
    steps : FormerSteps
        Those of its former divisions.
    """

    kernel: Kernel
    config: ChipConfig
    dims: Mapping[str, int]
    dtype: Format | Mapping[str, Format] | None
    out: Format | Mapping[str, Format] | None
    options: Mapping[str, Any]
    schedule: Schedule
    given: Program | None
    chains: bool = True
    printed: str = ""
    rolls: bool = True
    turns: bool = False
    program: Program = later()
    summed: Program = later()
    lean: Program = later()
    held: frozenset[str] = later()
    unfused: tuple[str, ...] = later()
    parted: tuple[str, ...] = ()
    together: bool = True
    division: Division = later()
    failures: dict[str, list[BadInputError]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refusals = Refusals(self.config)
        self.steps: FormerSteps = {}

    @property
    def all_options(self) -> dict[str, Any]:
        """Every option of the kernel, defaults included."""
        return {**self.kernel.options, **self.options}
