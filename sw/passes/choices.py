"""Choices of a schedule or of a program: constraints on a plan, and the block sizes that follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sw.language import Schedule
from sw.language.program_error import ProgramError
from sw.passes.part_compilation import PartCompilation
from sw.passes.plan import Plan
from sw.passes.product_recognition import Product
from sw.search.constraints import Constraints
from sw.stages.softmax.softmax_product import SoftmaxProduct

__all__ = ["block_sizes", "constraints_of", "planned_blocks", "require_no_choices", "with_block"]


def _first(mapping: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    return next((mapping[name] for name in names if name in mapping), None)


def constraints_of(product: Product, schedule: Schedule) -> Constraints:
    """Choices named by the schedule, and the program's count of slots for results.

    The program's block sizes are hints, as its ``row_par`` and ``col_par`` are: they bind no plan.
    """
    for field, choices in (("place", schedule.place), ("sum_par", schedule.sum_par)):
        for name, choice in choices.items():
            if field == "place" or choice != 1:
                raise ProgramError(
                    "unserved",
                    f"Schedule.{field} of `{name}` is not supported by hardware yet",
                    schedule.span_of(name),
                    value=str(choice),
                )
    tiles = {role: schedule.tile.get(index) for role, index in product.loops.items()}
    rows, columns = (
        choices.get(product.product) for choices in (schedule.row_par, schedule.col_par)
    )
    slots = {
        "a": _first(schedule.slots, (product.a_tile,)),
        "b": _first(schedule.slots, (product.b_tile,)),
        "c": _first(schedule.slots, product.c_tiles) or product.slots,
    }
    return Constraints(
        row_tile=tiles.get("row"),
        column_tile=tiles.get("column"),
        sum_tile=tiles.get("sum"),
        row_par=rows,
        col_par=columns,
        slots={key: count for key, count in slots.items() if count is not None},
    )


def with_block(product: SoftmaxProduct, schedule: Schedule) -> SoftmaxProduct:
    """A softmax between two products with the block of keys that the schedule names, if any.

    Raises
    ------
    ProgramError
        At another choice of the schedule.
    """
    key = product.loops["key"]
    for field in ("tile", "row_par", "col_par", "sum_par", "slots", "place"):
        for name, choice in getattr(schedule, field).items():
            if (field, name) != ("tile", key):
                raise ProgramError(
                    "unserved",
                    f"Schedule.{field} of `{name}` is not supported by hardware yet beside a "
                    f"softmax between two products: tile of `{key}` is, the keys of a block",
                    schedule.span_of(name),
                    value=str(choice),
                )
    return dataclasses.replace(product, block=schedule.tile.get(key, product.block))


def require_no_choices(schedule: Schedule) -> None:
    """Refuse a schedule for a kernel without a product, whose pipeline has no choices yet."""
    for field in ("tile", "row_par", "col_par", "sum_par", "slots", "place"):
        for name, choice in getattr(schedule, field).items():
            raise ProgramError(
                "unserved",
                f"Schedule.{field} of `{name}` is not supported by hardware yet in a kernel "
                "without a product",
                schedule.span_of(name),
                value=str(choice),
            )


def block_sizes(c: PartCompilation) -> dict[str, int]:
    """Block size of each loop: as named, otherwise the plan's."""
    if c.softmax is not None:
        assert c.pipeline is not None
        blocks = {"query": c.pipeline.block_rows, "key": c.pipeline.block_keys}
        return {index: blocks[role] for role, index in c.softmax.loops.items()}
    if c.region is not None:
        assert c.pipeline is not None
        blocks = {
            "row": c.pipeline.block_rows,
            "column": c.pipeline.block_columns,
            "sum": c.pipeline.block_keys,
        }
        return {index: blocks[role] for role, index in c.region.loops.items()}
    assert c.product is not None and c.plan is not None
    found = planned_blocks(c.plan)
    return {
        index: c.schedule.tile.get(index, found[role]) for role, index in c.product.loops.items()
    }


def planned_blocks(plan: Plan) -> dict[str, int]:
    """Rows, columns and terms of a block of a plan, in the program's roles of its loops."""
    rows, columns = plan.block_rows, plan.columns
    if plan.product.turned:
        rows, columns = columns, rows
    return {"row": rows, "column": columns, "sum": plan.a_slab * plan.lanes}
