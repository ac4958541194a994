"""Quick estimates of the cycles of plans, by which a search sorts them, and bounds of estimates."""

from __future__ import annotations

from hw.numeric.division import ceil_div
from sw.cost import Shares, last_cycles, load_cycles, shares
from sw.epilogue.collector import writer_choices
from sw.fabric.merges import MERGED, MOST_COLLECTED
from sw.passes.fit import pieces
from sw.passes.plan import Plan, fewest_rows
from sw.search.operand_agcus import a_parts_of, a_shares, b_shares, operand_agcus

__all__ = ["beside_cycles", "least", "product_cycles", "repeated_cycles", "rough"]

#: A plan is charged this part of the time in which its grid is busy: of two plans that memory
#: bounds alike, the grid that is less busy catches up after a wait.
_SLACK = 16
#: And this part of the time in which its busiest port loads: cycles that cost much traffic are not
#: worth it, and they are lost to a slower memory.
_SPARED = 128
#: A plan is charged this part of its first slabs: of two plans alike, slots of the one with shorter
#: slabs are free earlier.
_LONGER = 1 / 1024
#: A bound is smaller by this factor, which is more than sums of other parts differ by rounding.
_BELOW = 1 - 1e-9


def rough(plan: Plan) -> float:
    """A quick estimate of the cycles, before buffer allocation.

    Parameters
    ----------
    plan : Plan
    """
    share = _first_shares(plan)
    single_pass = _pass_cycles(plan, share)
    passes, end = _product_cycles(plan, share)
    # The first pass begins with the first slabs, and lasts as long as the loads of its panel, which
    # are some of all loads.
    a, b = share.groups * share.a, share.b
    first = max(share.at_port(plan.a_slabs * a, plan.b_slabs * b) - plan.together * single_pass, 0)
    begin = max(share.at_port(a, b), share.a_writes) + _LONGER * (a + b)
    loads = load_cycles(plan, share)
    return max(passes + first, loads) + begin + end + _beside(plan, loads)


def repeated_cycles(plan: Plan) -> float:
    """Cycles of one of many iterations, whose loads, passes and stores overlap with others.

    Parameters
    ----------
    plan : Plan
    """
    share = _first_shares(plan)
    return max(_product_cycles(plan, share)[0], load_cycles(plan, share))


def product_cycles(plan: Plan) -> tuple[float, float]:
    """Cycles of all passes and of the stores meanwhile, and those in which the last results leave.

    Parameters
    ----------
    plan : Plan
    """
    return _product_cycles(plan, _first_shares(plan))


def _product_cycles(plan: Plan, share: Shares) -> tuple[float, float]:
    compute = plan.row_blocks * plan.all_passes * _pass_cycles(plan, share)
    stores = plan.row_blocks * plan.c_slots * share.c
    return max(compute, stores), last_cycles(plan, share, pieces(plan, {}))


def _pass_cycles(plan: Plan, share: Shares) -> float:
    """Cycles of a pass: of its tiles, or until its results have left."""
    return max(plan.read_tiles * plan.tile_cycles, share.results)


def beside_cycles(plan: Plan) -> float:
    """What counts beside the cycles of a plan, in cycles: work of its PCUs, and loads.

    Parameters
    ----------
    plan : Plan
    """
    return _beside(plan, load_cycles(plan, _first_shares(plan)))


def _beside(plan: Plan, loads: float) -> float:
    return plan.grid_cycles / _SLACK + loads / _SPARED


def least(plan: Plan) -> float:
    """A bound: `rough` of no plan that differs from this one in its slabs alone is less.

    Parameters
    ----------
    plan : Plan
        With one slab of A and one of B. Of all it has the fewest bursts, commands and tiles.
    """
    agcus = plan.config.agcu.count
    # Slabs decide how many of two AGCUs load A beside one more input of a product.
    either = agcus == 2 and plan.side_inputs == 1 and not plan.one_operand
    return _BELOW * min(_least(plan, each) for each in ((1, 2) if either else (a_shares(plan),)))


def _least(plan: Plan, loading: int) -> float:
    """The bound of plans whose A so many AGCUs may load."""
    a_parts = 2 if plan.row_par == 1 and plan.config.agcu.count > 1 else 1
    share = _shares(plan, a_parts, 1, loading)
    a, b = share.groups * share.a, share.b
    single_pass = _pass_cycles(plan, share)
    compute = plan.row_blocks * plan.all_passes * single_pass
    panels = plan.row_blocks * (1 if plan.resident else plan.panel_reads)
    # Shorter slabs of B are perhaps kept for all rows.
    windows = 1 if plan.product.turned else plan.b_windows
    blocks = plan.row_blocks * plan.c_slots
    loads = share.at_port(panels * a, windows * b) + blocks * share.side
    longest = max(plan.tiles * max(plan.tile_cycles, fewest_rows(plan.config)), share.results)
    first = max(share.at_port(a, b) - plan.together * longest, 0)
    last = last_cycles(plan, share, pieces(plan, {}))
    return max(max(compute, blocks * share.c) + first, loads) + last + _beside(plan, loads)


def _first_shares(plan: Plan) -> Shares:
    """Cycles per load and store, where as many AGCUs load A as may."""
    agcus, loading = plan.config.agcu.count, a_shares(plan)
    a_parts = a_parts_of(plan)[0] if loading == agcus else 1
    return _shares(plan, a_parts, a_parts, loading)


def _shares(plan: Plan, a_parts: int, a_agcus: int, loading: int) -> Shares:
    """Cycles per load and store, by the first choice that `fit` tries.

    Parameters
    ----------
    plan : Plan
    a_parts : int
        AGCUs that share the slots of A.
    a_agcus : int
        Those of the choice of AGCUs: fewer leave more AGCUs to B.
    loading : int
        Most AGCUs that load A.
    """
    b_parts = min(b_shares(plan)[0], plan.config.agcu.count)
    of_a, of_b = operand_agcus(plan, b_parts, a_agcus, loading)
    return shares(
        plan,
        max(count for *_, count in of_a),
        a_parts,
        b_parts,
        _collected(plan),
        both=any(each in of_b for each, *_ in of_a),
    )


def _collected(plan: Plan) -> tuple[int, int, int]:
    """Row groups and PCU columns of a result writer, and its AGCU's writers.

    They are of the first choice that `fit` tries. Each input of a writer has a chain of lane
    programs, so writers may be fewer than AGCUs.
    """
    rows, columns, epilogue = plan.row_par, plan.col_par, plan.product.epilogue
    chain = len(epilogue.chain) if epilogue else 0
    for most, parts in writer_choices(plan):
        groups, across = ceil_div(rows, most), ceil_div(columns, parts)
        inputs = most * parts * (1 if groups * across <= MERGED else 2)
        fits = rows * columns + inputs * chain <= plan.config.pcu_count
        if fits and groups * across <= MOST_COLLECTED:
            return groups, across, ceil_div(most * parts, plan.config.agcu.count)
    return rows, columns, 1
