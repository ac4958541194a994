"""Loops of a walk over a slot of a buffer: from counts and strides in elements, or over columns."""

from __future__ import annotations

from hw.arch.descriptor import MAX_BOX
from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import ADDRESS_LOOPS, Level
from hw.numeric.division import ceil_div
from sw.passes.field_limits import Unfit
from sw.stages.long_rows import divisor

__all__ = ["boxes_across", "column_loops", "loop", "nest", "require_loops"]


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


def column_loops(count: int, vector: int) -> tuple[LoopProgram, ...]:
    """Outermost address loops over columns, in order, in blocks of vector × vector elements.

    Parameters
    ----------
    count : int
        Columns.
    vector : int
        Elements per vector.
    """
    full, tail = divmod(count, vector)
    block = vector**2
    if not full:
        return (loop(tail, 1),)
    if not tail:
        return (loop(full, block), LoopProgram(vector, stride=1))
    # The first step covers the whole blocks, the second one the columns behind them.
    whole = Level.ADDRESS.value
    within = LoopProgram(vector, stride=1, slope=tail - vector, outer=whole)
    if full == 1:
        return (LoopProgram(2, stride=block), within)
    blocks = LoopProgram(full, stride=block, slope=1 - full, outer=whole)
    return (LoopProgram(2, stride=full * block), blocks, within)


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
