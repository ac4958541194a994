"""Boxes of the result of a product in memory, or of a tile or vector beside it."""

from __future__ import annotations

import dataclasses

from hw.arch.descriptor import Descriptor
from hw.arch.loops import BoxLoop
from sw.array_spec import ArraySpec
from sw.passes.plan import Plan
from sw.stages.stage_graph import boxes_of

__all__ = ["ResultBoxes"]


@dataclasses.dataclass(frozen=True)
class ResultBoxes:
    """Boxes by columns and rows of the product, which one of the transposes exchanges in memory.

    Parameters
    ----------
    plan : Plan
    arrays : tuple of ArraySpec
        Arguments of the launch.
    """

    plan: Plan
    arrays: tuple[ArraySpec, ...]

    def boxes(
        self, name: str, box: tuple[int, int], row: int = 0, column: int = 0
    ) -> tuple[Descriptor, int]:
        """Descriptor and argument of boxes of columns × rows of a tensor, from a place on."""
        if self.plan.product.turned:
            box, row, column = box[::-1], column, row
        return boxes_of(self.arrays, name, box, row, column)

    def loop(self, count: int, dimension: int, step: int) -> BoxLoop:
        """Loop over boxes along columns (0) or rows (1)."""
        return BoxLoop(count, 1 - dimension if self.plan.product.turned else dimension, step)
