"""Walks of a product's operands: written as they lie in memory, read as vectors of k."""

from __future__ import annotations

from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import Access, Level
from sw.passes.plan import Plan
from sw.stages.operand_slot import OperandSlot
from sw.stages.walk_loops import loop, nest

__all__ = [
    "access_of",
    "half_columns",
    "pass_loop",
    "split_loops",
    "stationary_loops",
    "streaming_loops",
    "tile_loop",
    "vector_loops",
    "written_part",
]


def written_part(slot: OperandSlot, part: int, parts: int) -> tuple[tuple[LoopProgram, ...], int]:
    """Loops and first element of one of several writers, which share a slot's rows in memory."""
    lanes, across = slot.lanes, slot.lines // slot.lanes
    if slot.along_k:
        lines = slot.lines // parts
        return nest((lines * slot.tiles, lanes)), part * slot.distance(lines)
    # Writers share a slot by tiles, or, where it has one, by rows of the tile.
    tiles, rows, step = slot.tiles, lanes, 0
    if parts > 1 and tiles > 1:
        tiles //= parts
        step = tiles * slot.tile_stride
    elif parts > 1:
        rows //= parts
        step = rows * lanes
    return nest((tiles, slot.tile_stride), (rows, lanes), (across, slot.block)), part * step


def access_of(slot: OperandSlot) -> Access:
    """Piece of a slot that is a vector of k."""
    return Access.ROW if slot.along_k else Access.COLUMN


def tile_loop(slot: OperandSlot, slabs: int, spare: int) -> LoopProgram:
    """Loop over the tiles of a slot.

    Parameters
    ----------
    slot : OperandSlot
    slabs : int
        Slots of a panel.
    spare : int
        Tiles of the last one that are not read; at most one if there are more than two.
    """
    return _last_shorter(slot.tiles, slot.tile_stride, slabs, spare, Level.SLOTS)


def pass_loop(plan: Plan, stride: int, outer: Level) -> LoopProgram:
    """Loop over the passes at once, of which the last column block has perhaps fewer.

    Parameters
    ----------
    plan : Plan
    stride : int
    outer : Level
        The loop over column blocks.
    """
    return _last_shorter(plan.together, stride, plan.col_blocks, plan.spare_passes, outer)


def _last_shorter(count: int, stride: int, turns: int, spare: int, outer: Level) -> LoopProgram:
    """Loop with fewer iterations in the last turn of an outer one: one, if turns are over two."""
    if turns == 1 or not spare:
        return loop(count - spare, stride)
    # The sum stays above the whole count until the last turn, where it is a whole one less.
    shift = (turns - 2).bit_length()
    base = (count << shift) + (turns - 2) * spare
    return LoopProgram(base, stride=stride, slope=-spare, outer=outer.value, shift=shift)


def streaming_loops(slot: OperandSlot, *tiles: LoopProgram) -> tuple[LoopProgram, ...]:
    """Loops that read all lines within the loops over tiles; they are a packet."""
    if slot.along_k:
        return *tiles, loop(slot.lines, slot.line_stride)
    blocks = loop(slot.lines // slot.lanes, slot.block)
    return *tiles, blocks, LoopProgram(slot.lanes, stride=slot.line_stride)


def stationary_loops(
    slot: OperandSlot, outer: tuple[LoopProgram, ...], lines: int, packet: int
) -> tuple[LoopProgram, ...]:
    """Loops that read lines within others, each time the first ones; the last one is a packet."""
    if slot.along_k:
        groups = [(lines // packet, slot.distance(packet))]
    else:
        width = min(slot.lanes, lines)
        groups = [(lines // width, slot.block), (width // packet, packet)]
    return *outer, *nest(*groups), LoopProgram(packet, stride=slot.line_stride)


def half_columns(plan: Plan, half: int) -> list[int]:
    """Grid columns whose weights lie in one half of the blocks in the first of two passes."""
    unit = plan.lanes // 2 // plan.config.grid_columns
    return [each for each in range(plan.col_par) if each // unit % 2 == half]


def split_loops(plan: Plan, half: int, *outer: LoopProgram) -> tuple[LoopProgram, ...]:
    """Loops that read the weights of `half_columns`, in two passes: from one half of blocks each.

    A pass has an odd number of half blocks, so the second one takes the other halves.
    """
    slot, packet, unit = plan.b_slot, plan.config.grid_columns, plan.lanes // 2

    def position(number: int) -> int:
        return number // 2 * slot.block + number % 2 * unit

    step = position(plan.pass_columns // unit + half) - position(half)
    inner = unit // packet
    loops = nest((len(half_columns(plan, half)) // inner, slot.block), (inner, packet))
    passes = pass_loop(plan, step, Level.WINDOWS)
    return *outer, passes, *loops, LoopProgram(packet, stride=slot.line_stride)


def vector_loops(
    plan: Plan, stride: int, outer: int, inner: int = Level.ADDRESS
) -> tuple[LoopProgram, LoopProgram]:
    """Loops over the vectors of a row of a column block, of which the last block has fewer.

    Parameters
    ----------
    plan : Plan
    stride : int
    outer, inner : int
        Positions of the loop over column blocks and of the first one of these.
    """
    every, last = plan.c_columns // plan.result_lanes, plan.last_vectors
    if plan.col_blocks == 1 or last == every:
        return LoopProgram(), loop(last, stride)
    # The last block takes one step of the first loop, whose vectors it has.
    steps = _last_shorter(2, last * stride, plan.col_blocks, 1, Level(outer))
    return steps, LoopProgram(last, stride=stride, slope=every - 2 * last, outer=inner)
