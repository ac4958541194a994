"""State of one compilation: inputs, and the results of each pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.ir.program import Program
from sw.language import Kernel, Schedule
from sw.netlist import Netlist
from sw.passes.fit import Fit
from sw.passes.pack import Home
from sw.passes.parallel import Constraints
from sw.passes.place import Placement
from sw.passes.plan import Plan
from sw.passes.route import Routes
from sw.passes.stage import Product
from sw.prove import Liveness
from sw.stages.pipeline import Pipeline
from sw.stages.region import Region
from sw.stages.stage_graph import StageGraph

__all__ = ["Compilation"]


def _later() -> Any:
    return dataclasses.field(init=False, repr=False)


@dataclasses.dataclass
class Compilation:
    """Inputs of a compilation, and the results of its passes.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims : mapping of str to int
    dtype, out : Format, mapping of str to Format, or None
    options : mapping of str to value
    schedule : Schedule
    place_seed : int
    given : Program or None
        The program, traced and checked, if the caller has it.

    Members
    -------
    program, summed, lean, tiled, masked : Program
        After `check`, `accumulate`, `simplify`, `tile` and `mask`.
    golden_program : Program
        The program after `accumulate` with the block sizes of the plan.
    product : Product or None
        The kernel's product of matrices, if it has one.
    region : Region or None
        The kernel's element math, if it has no product.
    arrays : tuple of ArraySpec
        Arguments of the launch, in order.
    constraints : Constraints
        Choices of the schedule and of the program.
    plan : Plan or None
    fit : Fit or None
    pipeline : Pipeline or None
        As of the region.
    homes : mapping of str to Home
        Allocation of the buffers.
    sizes : dict of str to int
        Block size per loop.
    graph : StageGraph
    netlist : Netlist
    placement : Placement
    routes : Routes
    chip : ChipProgram
    image : bytes
    liveness : Liveness
    failures : dict of str to list of BadInputError
        Alternatives that failed, by pass.
    """

    kernel: Kernel
    config: ChipConfig
    dims: Mapping[str, int]
    dtype: Format | Mapping[str, Format] | None
    out: Format | Mapping[str, Format] | None
    options: Mapping[str, Any]
    schedule: Schedule
    place_seed: int
    given: Program | None
    program: Program = _later()
    summed: Program = _later()
    lean: Program = _later()
    tiled: Program = _later()
    masked: Program = _later()
    golden_program: Program = _later()
    product: Product | None = _later()
    region: Region | None = _later()
    arrays: tuple[ArraySpec, ...] = _later()
    constraints: Constraints = _later()
    plan: Plan | None = _later()
    fit: Fit | None = _later()
    pipeline: Pipeline | None = _later()
    homes: Mapping[str, Home] = _later()
    sizes: dict[str, int] = _later()
    graph: StageGraph = _later()
    netlist: Netlist = _later()
    placement: Placement = _later()
    routes: Routes = _later()
    chip: ChipProgram = _later()
    image: bytes = _later()
    liveness: Liveness = _later()
    failures: dict[str, list[BadInputError]] = dataclasses.field(default_factory=dict)

    @property
    def choice(self) -> str:
        """Summary of the plan or of the pipeline, a line of text."""
        if self.pipeline is not None:
            return self.pipeline.summary
        assert self.plan is not None
        return self.plan.describe()
