"""State of the compilation of one part: inputs, and the results of each pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.fabric.place import Placement
from sw.fabric.route import Routes
from sw.gathers.row_gather import RowGather
from sw.gathers.row_scatter import RowScatter
from sw.ir.program import Program
from sw.language import Schedule
from sw.netlist import Netlist
from sw.parts.part import Part
from sw.passes.fit import Fit
from sw.passes.pack import Home
from sw.passes.pass_driver import later
from sw.passes.plan import Plan
from sw.passes.product_recognition import Product
from sw.prologue.computed_product import ComputedProduct
from sw.prove import Liveness
from sw.search.constraints import Constraints
from sw.stages.chip_share import beside_text
from sw.stages.pipeline import Pipeline
from sw.stages.region import Region
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.stages.stage_graph import StageGraph

__all__ = ["PartCompilation"]


@dataclasses.dataclass
class PartCompilation:
    """A part of a kernel to be compiled to an image, and the results of its passes.

    Parameters
    ----------
    part : Part
    memory : tuple of ArraySpec
        Arguments of the kernel, and intermediates.
    config : ChipConfig
    schedule : Schedule
        The choices that name something of this part.
    place_seed : int

    Members
    -------
    tiled, masked : Program
        After `tile` and `mask`.
    product : Product or None
        The part's product of matrices, if it has one.
    softmax : SoftmaxProduct or None
        The part's two products with a softmax between them, if it has them.
    region : ComputedProduct, Region, RowGather, RowScatter or None
        The part's element math, if it has no product of tensors alone.
    constraints : Constraints
        Choices of the schedule and of the program.
    plan : Plan or None
    fit : Fit or None
    pipeline : Pipeline or None
        As of the region or of the softmax.
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
    placed : list of (Netlist, int, Placement)
        Placements by netlist and seed.
    timed : list of (Netlist, Placement, Routes, ChipProgram)
        What the plans that were timed became.
    """

    part: Part
    memory: tuple[ArraySpec, ...]
    config: ChipConfig
    schedule: Schedule
    place_seed: int
    tiled: Program = later()
    masked: Program = later()
    product: Product | None = later()
    softmax: SoftmaxProduct | None = later()
    region: ComputedProduct | Region | RowGather | RowScatter | None = later()
    constraints: Constraints = later()
    plan: Plan | None = later()
    fit: Fit | None = later()
    pipeline: Pipeline | None = later()
    homes: Mapping[str, Home] = later()
    sizes: dict[str, int] = later()
    graph: StageGraph = later()
    netlist: Netlist = later()
    placement: Placement = later()
    routes: Routes = later()
    chip: ChipProgram = later()
    image: bytes = later()
    liveness: Liveness = later()
    failures: dict[str, list[BadInputError]] = dataclasses.field(default_factory=dict)
    placed: list[tuple[Netlist, int, Placement]] = dataclasses.field(default_factory=list)
    timed: list[tuple[Netlist, Placement, Routes, ChipProgram]] = dataclasses.field(
        default_factory=list
    )

    @property
    def program(self) -> Program:
        """The operations."""
        return self.part.program

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Memory layout of the program's tensors."""
        return self.part.arrays

    @property
    def choice(self) -> str:
        """Summary of the plan or of the pipeline, a line of text."""
        if self.pipeline is not None:
            return self.pipeline.summary
        assert self.plan is not None
        return beside_text(self.part.points) + self.plan.describe()
