"""Walks of a product's operands: written as they lie in memory, read as vectors of k."""

from __future__ import annotations

from hw.arch.loops import LoopProgram
from hw.arch.words.pmu_word import Access, Level
from sw.passes.plan import Plan
from sw.stages.operand_slot import OperandSlot
from sw.stages.walk_loops import loop, nest

__all__ = [
    "access_of",
    "pass_loop",
    "stationary_loops",
    "streaming_loops",
    "tile_loop",
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
