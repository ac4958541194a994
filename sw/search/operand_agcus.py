"""AGCUs that load the operands of a product."""

from __future__ import annotations

from hw.numeric.division import ceil_div
from sw.passes.plan import Plan, spread

__all__ = ["MEETING", "a_parts_of", "a_shares", "b_shares", "operand_agcus"]

#: Two AGCUs that load the same slots meet at their PMU, and what either loads beside waits: where
#: a PMU of B is written in each cycle, passes are held up while a panel of A is loaded.
MEETING = 21 / 20


def a_shares(plan: Plan) -> int:
    """Most AGCUs that may load A: not all where inputs beside the sums need streams, too.

    Of two, one is left to B, unless the busier one has fewer bytes to load with half of A.
    """
    agcus, inputs = plan.config.agcu.count, plan.side_inputs
    if not inputs:
        return agcus
    if plan.one_operand or inputs >= agcus or (agcus == 2 and not _a_divided(plan)):
        return max(1, agcus // 2)
    return agcus


def _a_divided(plan: Plan) -> bool:
    """Whether A is better loaded by two AGCUs than by one of them, beside a product's inputs.

    A tile then comes at the one port where B does not, instead of at both.
    """
    product = plan.product
    assert product.epilogue is not None
    tiles = product.epilogue.formats(product.epilogue.tiles)
    beside = product.m * product.n * sum(each.bits for each in tiles) // 8
    panels = plan.row_blocks * (1 if plan.resident else plan.panel_reads)
    a = panels * plan.row_par * plan.a_slabs * plan.a_bytes
    b = plan.b_windows * plan.b_slabs * plan.b_bytes
    return a / 2 + max(b, beside) < max(a, b) + beside / 2


def b_shares(plan: Plan) -> tuple[int, ...]:
    """Numbers of AGCUs that may load B, the better one first.

    Where A is fetched for each pass, or B in each cycle, B comes by an AGCU of its own, if there is
    one. The B of a turned product is small. If two engines read B, both report a freed slot to the
    one AGCU.
    """
    if plan.product.turned or plan.side_inputs or plan.b_split:
        return (1,)
    own = 1 < plan.row_par < plan.config.agcu.count and not plan.resident
    return (1, 2) if own or _b_always(plan) else (2, 1)


def a_parts_of(plan: Plan) -> tuple[int, ...]:
    """Numbers of AGCUs that may share the slots of A, the better one first."""
    if not plan.rows_shared or (plan.config.agcu.count == 2 and _b_always(plan)):
        return (1,)
    return (2, 1)


def _b_always(plan: Plan) -> bool:
    """Whether B is loaded in nearly every cycle, and A is not, for one row group."""
    if plan.row_par > 1 or not plan.resident or plan.product.turned or plan.side_inputs:
        return False
    return plan.pass_columns * MEETING > plan.tile_cycles and plan.config.agcu.count > 1


def operand_agcus(
    plan: Plan, b_parts: int, a_parts: int, most: int
) -> tuple[tuple[tuple[int, int, int], ...], tuple[int, ...]]:
    """AGCUs that load A, each with its first row group and number of groups, and those of B.

    Parameters
    ----------
    plan : Plan
    b_parts : int
        AGCUs that share the slots of B.
    a_parts : int
        AGCUs that share the slots of the only row group.
    most : int
        AGCUs that may load A.
    """
    agcus = plan.config.agcu.count
    own = most - b_parts
    if own > 0 and not plan.side_inputs and not plan.one_operand:
        # A leaves the AGCUs of B to it if none of the others then loads more groups.
        groups = [ceil_div(plan.row_par, each) for each in (own, most)]
        most = own if groups[0] == groups[1] else most
    if a_parts == 2:
        shares: tuple[tuple[int, int, int], ...] = ((0, 0, 1), (1, 0, 1))
    else:
        # A single track carries the A stream of even AGCUs and the B stream of odd ones.
        loading = range(0, most, 2 if plan.one_operand else 1)
        shares = tuple(
            (agcu, *each) for agcu, each in zip(loading, spread(plan.row_par, len(loading)))
        )
    b_agcus = tuple(agcus - 1 - number for number in range(b_parts))
    if agcus == 2 and not plan.side_inputs and len(shares) > 1:
        b_agcus = (0, 1)[:b_parts]
    if plan.one_operand:
        b_agcus = ((agcus - 2) | 1,)
    return shares, b_agcus
