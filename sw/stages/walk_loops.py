"""Loops of a walk over a slot of a buffer, and boxes across a row."""

from __future__ import annotations

from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import ADDRESS_LOOPS
from hw.numeric.division import ceil_div
from sw.passes.field_limits import Unfit
from sw.stages.long_rows import divisor

__all__ = ["boxes_across", "loop", "nest", "require_loops"]


def loop(count: int, stride: int) -> LoopProgram:
    """Loop with a stride, which is dropped for one iteration: its field may be too small."""
    return LoopProgram(count, stride=stride if count > 1 else 0)


def nest(*loops: tuple[int, int]) -> tuple[LoopProgram, ...]:
    """Loop nest from counts and strides, without loops of one iteration."""
    return tuple(LoopProgram(count, stride=stride) for count, stride in loops if count > 1)


def require_loops(*loops: LoopProgram) -> tuple[LoopProgram, ...]:
    """Address loops, of which those of one iteration are left out if there are too many.

    Raises
    ------
    Unfit
        If there are too many still.
    """
    if len(loops) > ADDRESS_LOOPS:
        loops = tuple(each for each in loops if each != LoopProgram())
    if len(loops) > ADDRESS_LOOPS:
        rule = f"at most {ADDRESS_LOOPS} address loops"
        raise Unfit(f"Walk must have {rule}, not {len(loops)}", value=len(loops), rule=rule)
    return loops


def boxes_across(columns: int, vector: int, most: int = MAX_BOX) -> tuple[int, int]:
    """Width, at most ``most``, and number of boxes for a row: equal ones, if they are not short."""
    most = max(most, vector)
    if not columns % vector:
        wide = divisor(columns // vector, most // vector) * vector
        boxes = columns // wide
        if boxes == 1 or wide >= most // 4:
            return wide, boxes
    boxes = ceil_div(columns, most)
    wide = ceil_div(ceil_div(columns, boxes), vector) * vector
    return wide, ceil_div(columns, wide)
