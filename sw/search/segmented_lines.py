"""Boxes of a plan whose rows or columns lie in segments of memory: each is in one segment."""

from __future__ import annotations

from collections.abc import Sequence

from hw.arch.boxes.issuer_program import ISSUER_LOOPS
from sw.epilogue.collector import Collector, stored_columns
from sw.epilogue.side_loads import SideLoad, tile_columns
from sw.passes.field_limits import unfit
from sw.passes.plan import Plan
from sw.stages.segment_digits import split_loops

__all__ = ["divides_segments", "require_in_segments"]


def divides_segments(digits: Sequence[Sequence[int]], box: int) -> bool:
    """Whether boxes of so many rows or columns divide each segment evenly.

    Parameters
    ----------
    digits : sequence of sequence of int
        Those of rows or of columns of `Product.digits`.
    box : int
    """
    return all(sizes[0] % box == 0 for sizes in digits)


def require_in_segments(
    plan: Plan,
    shares: Sequence[tuple[int, int, int]],
    collectors: Sequence[Collector],
    pieces: int,
    sides: Sequence[SideLoad],
) -> None:
    """Refuse loops over boxes of A, B, C or a tile that go on across segments unevenly.

    Parameters
    ----------
    plan : Plan
    shares : sequence of (int, int, int)
        AGCUs of A, each with its first row group and number of groups.
    collectors : sequence of Collector
    pieces : int
        Slots of C per block of rows.
    sides : sequence of SideLoad
        Of an epilogue's inputs.

    Raises
    ------
    Unfit
    """
    inputs = plan.product.epilogue.inputs if plan.product.epilogue else {}
    tiles = [
        each
        for each in sides
        if plan.product.epilogue and each.value in plan.product.epilogue.tiles
    ]
    blocks, piece = (plan.row_blocks, plan.block_rows), plan.rows // pieces
    panels = (not plan.resident and plan.panel_reads > 1) + (plan.a_slabs > 1)
    across: tuple[tuple[int, int], ...] = (
        (plan.col_blocks, plan.columns),
        (plan.c_blocks, plan.pass_columns),
    )
    if plan.grouped:
        across = ((plan.c_slots, plan.c_columns),)
    around = sum(count > 1 for count, _ in across)
    for sizes in plan.product.digits[0]:
        for _, first, groups in shares:
            loops = blocks, (groups, plan.rows)
            _require(sizes, plan.rows, first * plan.rows, loops, panels)
        for each in collectors:
            parts = blocks, (pieces, piece), (each.groups, plan.rows)
            _require(sizes, piece, each.first * plan.rows, parts, around)
        for side in tiles:
            parts = blocks, (pieces, piece), _next(plan, side, 1)
            _require(sizes, piece, side.group * plan.rows, parts, around + side.by_columns)
    windows = (plan.col_blocks, plan.columns), (plan.halves, plan.pass_columns)
    repeats = (not plan.b_kept and plan.row_blocks > 1) + (plan.b_slabs > 1)
    for sizes in plan.product.digits[1]:
        _require(sizes, plan.b_slot.lines, 0, windows, repeats)
        for each in collectors:
            beside = sum(count > 1 for count in (plan.row_blocks, pieces, each.groups))
            first = each.column * plan.config.grid_columns
            _require(sizes, stored_columns(plan, each.columns), first, across, beside)
        for side in tiles:
            column, columns = side.columns
            beside = sum(count > 1 for count in (plan.row_blocks, pieces)) + (not side.by_columns)
            box = tile_columns(plan, inputs[side.value].type.format, columns)
            along = *across, _next(plan, side, 0)
            _require(sizes, box, column * plan.config.grid_columns, along, beside)


def _next(plan: Plan, side: SideLoad, axis: int) -> tuple[int, int]:
    """Number of the buffers of a tile, and rows (1) or columns (0) from one to the next."""
    if side.by_columns == (axis == 1):
        return 1, 0
    step = plan.rows if axis else side.columns[1] * plan.config.grid_columns
    return len(side.holds), step


def _require(
    sizes: Sequence[int], box: int, first: int, along: Sequence[tuple[int, int]], others: int
) -> None:
    """Refuse loops along an axis, beside so many others, that are no loops over its digits."""
    split = split_loops(sizes, box, first, along)
    if split + others > ISSUER_LOOPS:
        raise unfit("Loops over boxes in segments", f"be at most {ISSUER_LOOPS}", split + others)
