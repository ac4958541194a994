"""One part of a compiled kernel: its image, choices and prediction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.chip_program import ChipProgram
from sw.fabric.place import Placement
from sw.fabric.route import Routes
from sw.language import Schedule
from sw.netlist import Netlist
from sw.parts.part import Part
from sw.passes.fit import Fit
from sw.passes.pack import Home
from sw.passes.plan import Plan
from sw.passes.product_recognition import Product
from sw.stages.pipeline import Pipeline
from sw.stages.softmax.softmax_product import SoftmaxProduct
from sw.stages.stage_graph import StageGraph
from sw.timing.prediction import LATENCY, Prediction, predict_cycles

__all__ = ["CompiledPart"]


@dataclasses.dataclass(frozen=True)
class CompiledPart:
    """Result of the compilation of one part: what belongs to its image.

    Parameters
    ----------
    part : Part
        Operations, arrays and launches.
    schedule : Schedule
        Every choice, the compiler's included.
    sizes : mapping of str to int
        Block size per loop.
    product : Product or None
        The part's product of matrices, if it has one.
    softmax : SoftmaxProduct or None
        Its two products with a softmax between them, if it has them.
    plan, fit : Plan or None, Fit or None
        Of the product.
    pipeline : Pipeline or None
        Of anything else.
    choice : str
        What was chosen, as a line of text.
    homes : mapping of str to Home
        Allocation of the buffers.
    graph : StageGraph
    netlist : Netlist
    placement : Placement
    routes : Routes
    chip : ChipProgram
    image : bytes
    notes : tuple of str
        Hints of the program that were overruled, and better plans that were given up.
    texts : mapping of str to str
        Text form after each pass over the part.
    """

    part: Part
    schedule: Schedule
    sizes: Mapping[str, int]
    product: Product | None
    softmax: SoftmaxProduct | None
    plan: Plan | None
    fit: Fit | None
    pipeline: Pipeline | None
    choice: str
    homes: Mapping[str, Home]
    graph: StageGraph
    netlist: Netlist
    placement: Placement
    routes: Routes
    chip: ChipProgram
    image: bytes
    notes: tuple[str, ...]
    texts: Mapping[str, str]
    _predictions: dict[tuple[int, int], Prediction] = dataclasses.field(
        default_factory=dict, repr=False
    )

    def prediction(self, latency: int = LATENCY, repeat: int = 1) -> Prediction:
        """Predicted cycles of an entry of the launch list, computed once for each case.

        The places of arrays are those of the first launch.

        Parameters
        ----------
        latency : int
            Latency of the memory in cycles.
        repeat : int
            Iterations.
        """
        found = self._predictions.get((latency, repeat))
        if found is None:
            found = predict_cycles(
                self.chip,
                repeat=repeat,
                latency=latency,
                arguments=[each.offset for each in self.part.launches[0].arguments],
            )
            self._predictions[latency, repeat] = found
        return found

    @property
    def iterations(self) -> int:
        """Iterations of all launches."""
        return sum(launch.repeat for launch in self.part.launches)

    @property
    def points(self) -> int:
        """Points that all iterations compute: several of them in one, beside one another."""
        return self.part.points * self.iterations

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all iterations, without those on padding."""
        product = self.product
        if self.softmax is not None:
            return self.softmax.macs * self.iterations
        return product.m * product.n * product.k * self.points if product else 0

    @property
    def macs_issued(self) -> int:
        """Multiply-accumulates of all iterations, with those on padding."""
        if self.plan is not None:
            return self.plan.macs_issued * self.points
        return self.pipeline.macs_issued * self.iterations if self.pipeline else 0
