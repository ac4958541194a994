"""Boxes of the result of a product in memory, or of a tile or vector beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hw.arch.descriptor import Descriptor
from hw.arch.loops import BoxLoop
from sw.array_spec import ArraySpec
from sw.passes.plan import Plan
from sw.stages.segment_digits import in_segments, require_aligned
from sw.stages.stage_graph import argument_of, boxes_of

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
        self,
        name: str,
        box: tuple[int, int],
        loops: Sequence[BoxLoop],
        row: int = 0,
        column: int = 0,
    ) -> tuple[Descriptor, int, tuple[BoxLoop, ...]]:
        """Boxes of columns × rows of a tensor, from a place on, and the loops over them.

        They are a descriptor, an argument and the loops, which are of memory.
        """
        if self.plan.product.turned:
            box, row, column = box[::-1], column, row
        require_aligned(argument_of(self.arrays, name)[1], column)
        boxes = boxes_of(self.arrays, name, box, row, column)
        segments = self.arrays[boxes[1]].segments
        first = column if segments and segments.axis else row
        boxes, found = in_segments(self.arrays, boxes, loops, first)
        return *boxes, tuple(found)

    def loop(self, count: int, dimension: int, step: int) -> BoxLoop:
        """Loop over boxes along columns (0) or rows (1)."""
        return BoxLoop(count, 1 - dimension if self.plan.product.turned else dimension, step)
