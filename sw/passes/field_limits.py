"""Limits of a product: units that any plan needs, and fields that counts and strides must fit."""

from __future__ import annotations

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.arch.loops import COUNT_BITS
from hw.arch.words.pmu_word import ADDRESS_LOOPS
from sw.passes.plan import Plan

__all__ = ["Unfit", "require_count", "require_fields", "require_stride", "require_units", "unfit"]

_MOST_COUNT = (1 << COUNT_BITS) - 1


class Unfit(ValueError):
    """A plan that does not fit the chip; the message names what is needed and what there is.

    Parameters
    ----------
    message : str
    value : int
        The amount that the plan needs.
    rule : str
        The limit, in words.
    """

    def __init__(self, message: str, *, value: int, rule: str) -> None:
        super().__init__(message)
        self.value = value
        self.rule = rule


def unfit(noun: str, rule: str, value: int) -> Unfit:
    """Refusal by a rule, which follows "must", and the value that breaks it."""
    return Unfit(f"{noun} must {rule}, not {value}", value=value, rule=rule)


def require_count(noun: str, count: int) -> None:
    """Refuse a loop count that its field does not hold.

    Raises
    ------
    Unfit
    """
    if count > _MOST_COUNT:
        rule = f"at most {_MOST_COUNT}"
        raise Unfit(f"Count of {noun} must be {rule}, not {count}", value=count, rule=rule)


def require_stride(noun: str, stride: int, config: ChipConfig) -> None:
    """Refuse a stride over a PMU that its field does not hold.

    Raises
    ------
    Unfit
    """
    # A stride is signed, in as many bits as a byte's position in the scratchpad.
    capacity = config.pmu.capacity_bytes
    most = capacity // 2 - 1
    if stride > most:
        raise Unfit(
            f"Stride between {noun} must be at most {most} elements in a PMU of {capacity} bytes, "
            f"not {stride}",
            value=stride,
            rule=f"at most {most} elements",
        )


def require_walk(plan: Plan) -> None:
    """Refuse a plan whose halves of blocks of B have several packets, in slots of several tiles.

    Raises
    ------
    Unfit
    """
    loops = 3 + (plan.b_slab > 1) + (plan.lanes // 2 > plan.config.grid_columns)
    if loops > ADDRESS_LOOPS:
        rule = f"have at most {ADDRESS_LOOPS} address loops"
        raise unfit("Walk over the weights of every other PCU column", rule, loops)


def require_fields(plan: Plan) -> None:
    """Refuse a plan with a loop count or a stride too large for its field.

    Parameters
    ----------
    plan : Plan

    Raises
    ------
    Unfit
        At the first such count or stride.
    """
    for noun, count in (
        ("passes over a block of rows", plan.all_passes),
        ("blocks of rows", plan.row_blocks),
        ("slabs of a panel of A", plan.a_slabs),
        ("slabs of a panel of B", plan.b_slabs),
        ("rows of a slab of A", plan.rows * plan.a_slab),
    ):
        require_count(noun, count)
    packet = plan.config.grid_columns
    strides = [*plan.a_slot.strides("A", "rows"), *plan.b_slot.strides("B", "columns")]
    if plan.product.b_along_k:
        strides.append(("PCUs' columns of B", plan.col_par, plan.b_slot.distance(packet)))
    step = plan.b_slot.distance(plan.pass_stride)
    if plan.b_split:
        require_walk(plan)
        # From the halves of one pass to the other halves of the next.
        step += plan.b_slot.block - plan.lanes // 2
    strides.append(("passes over B", plan.passes, step))
    for noun, iterations, stride in strides:
        if iterations > 1:
            require_stride(noun, stride, plan.config)


def require_units(config: ChipConfig) -> None:
    """Refuse a chip with too few PMUs, tracks or AGCUs for any product.

    Raises
    ------
    BadInputError
        With what is needed and what there is.
    """
    agcus = config.agcu.count
    for noun, count, use in (
        ("PMUs", config.pmu_count, "the buffers of A, B and C"),
        ("token tracks or 2 AGCUs", max(config.token_tracks, agcus), "free slots of A and of B"),
        ("tracks or 2 AGCUs", max(config.tracks, agcus), "the streams of A and of B"),
    ):
        if count < 2:
            raise BadInputError(
                f"Chip must have at least 2 {noun} for {use} of a product, not {count}",
                kind="does-not-fit",
                where="config",
                value=count,
                rule=f"at least 2 {noun}",
            )
