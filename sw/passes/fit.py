"""Buffer allocation of a plan: buffers to PMUs, streams to AGCUs, results to result writers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from hw.arch.limits import MAX_CREDITS, MAX_MODULUS
from hw.numeric.division import ceil_div
from sw.epilogue.collector import Collector, result_writers, writer_choices
from sw.epilogue.side_loads import SideLoad, require_epilogue, side_buffers, side_loads
from sw.passes.field_limits import Unfit
from sw.passes.pack import Buffer, Home, pack, require_room
from sw.passes.plan import Plan
from sw.search.operand_agcus import a_parts_of, a_shares, b_shares, operand_agcus
from sw.search.segmented_lines import require_in_segments
from sw.timing.prediction import LATENCY

__all__ = [
    "Fit",
    "fit",
    "needed_buffers",
    "pieces",
    "require_results",
]

#: Vectors that arrive in the time from the request of a load to that of the next one into its slot:
#: the latency that predictions assume, and the ways of vectors and tokens.
_FLIGHT = LATENCY + 60
#: Fewest rows of a slot of C, if a block of rows is divided into several.
_LEAST_PIECE = 16


@dataclasses.dataclass(frozen=True)
class Fit:
    """Buffer allocation of a plan: which AGCU loads, which PMU keeps and which AGCU stores what.

    Parameters
    ----------
    homes : mapping of str to Home
        Allocation of each buffer: ``a0``, ``a1``, … of row groups, ``b``, ``c0``, … of result
        writers.
    a_agcus : tuple of (int, int, int)
        AGCU, first row group and number of groups it loads; several AGCUs of one group share its
        rows.
    a_parts : int
        AGCUs that share the rows of a group.
    b_agcus : tuple of int
        AGCUs that share the rows of B.
    collectors : tuple of Collector
    pieces : int
        Slots of C per block of rows.
    slowdown : float
        Time of the busiest PMU port relative to that of the PE array, at least 1.
    sides : tuple of SideLoad
        Of an epilogue's inputs.
    """

    homes: Mapping[str, Home]
    a_agcus: tuple[tuple[int, int, int], ...]
    a_parts: int
    b_agcus: tuple[int, ...]
    collectors: tuple[Collector, ...]
    pieces: int
    slowdown: float
    sides: tuple[SideLoad, ...] = ()

    @property
    def agcus(self) -> tuple[int, ...]:
        """Number of AGCUs in use."""
        used = {agcu for agcu, _, _ in self.a_agcus} | set(self.b_agcus)
        used |= {each.agcu for each in self.sides}
        return tuple(sorted(used | {each.agcu for each in self.collectors}))


def fit(plan: Plan, slots: Mapping[str, int], *, plain: bool = False) -> Fit:
    """Allocate the buffers and streams of a plan.

    Parameters
    ----------
    plan : Plan
    slots : mapping of str to int
        Required tiles in the buffers ``a``, ``b`` and ``c``, as far as named.
    plain : bool
        Use the fewest links: one AGCU per operand stream and one result writer.

    Raises
    ------
    Unfit
        If there is no allocation.
    """
    # Most plans of a large product are refused here.
    require_room(plan.config, _operand_buffers(plan, slots))
    problem: Unfit | None = None
    best: Fit | None = None
    for choice in [((1, 1), 1, 1, a_shares(plan))] if plain else _choices(plan):
        try:
            found = _try(plan, slots, *choice)
        except Unfit as error:
            problem = problem or error
            continue
        if best is None or found.slowdown < best.slowdown - 1e-9:
            best = found
        if best.slowdown <= 1:
            break
    if best is None:
        assert problem is not None
        raise problem
    return best


def require_results(plan: Plan, slots: Mapping[str, int]) -> None:
    """Refuse a plan whose results no choice of result writers takes, whatever its slabs are.

    Parameters
    ----------
    plan : Plan
    slots : mapping of str to int
        As `fit` takes them.

    Raises
    ------
    Unfit
        If there is no such choice.
    """
    problem: Unfit | None = None
    parts = pieces(plan, slots)
    for writers in dict.fromkeys(each for each, *_ in _choices(plan)):
        try:
            require_epilogue(plan, result_writers(plan, writers), parts)
        except Unfit as error:
            problem = problem or error
        else:
            return
    assert problem is not None
    raise problem


def _choices(plan: Plan) -> Iterator[tuple[tuple[int, int], int, int, int]]:
    """Best first: result writers (over rows, columns), AGCUs of B, per row group, and of A."""
    agcus = plan.config.agcu.count
    if plan.side_inputs:
        for writers in writer_choices(plan):
            for loads in dict.fromkeys((a_shares(plan), 1)):
                yield writers, 1, 1, loads
        return
    if plan.one_operand:
        yield from ((each, 1, 1, agcus) for each in writer_choices(plan) if each[1] == 1)
        return
    for b_parts in b_shares(plan):
        if b_parts > agcus or (b_parts == 2 and not _b_shared(plan)):
            continue
        for a_parts in a_parts_of(plan):
            for collectors in writer_choices(plan):
                yield collectors, b_parts, a_parts, agcus


def _b_shared(plan: Plan) -> bool:
    """Whether two AGCUs can share the slots of B."""
    return plan.b_slot.halves(plan.product.n, plan.product.adjacent)


def pieces(plan: Plan, named: Mapping[str, int]) -> int:
    """Slots of C per block of rows: equal, of whole vectors, two blocks to a buffer."""
    if not plan.one_pass or named.get("c", 2) == 1:
        return 1
    most = plan.config.pmu.slots // named.get("c", 2)
    step = plan.packet_rows
    if plan.product.turned:
        # Columns of rows are read: as many rows as a vector has elements.
        step = plan.result_lanes
    fitting = (
        count
        for count in range(min(most, plan.rows // _LEAST_PIECE), 1, -1)
        if not plan.rows % (count * step)
    )
    return next(fitting, 1)


def _slots(
    named: Mapping[str, int], name: str, tile: int, least: int, most: int
) -> tuple[int, int]:
    """Fewest and most slots of a buffer: both as named, in tiles of some slots, if it is."""
    if name not in named:
        return least, most
    count = named[name] * tile
    if count < least:
        raise Unfit(
            f"Buffer {name} needs {least} slots of a slab, and is given {count}",
            value=count,
            rule=f"at least {least} slots of a slab",
        )
    return count, count


def _operand_buffers(
    plan: Plan, named: Mapping[str, int], b_parts: int = 1, a_parts: int = 1
) -> Iterator[Buffer]:
    """The buffers of A, one of each row group, and of B."""
    cycles = plan.tile_cycles
    # In a loop over the sum a tile is a K-block, otherwise a panel.
    a_tile, b_tile = (1, 1) if "sum" in plan.product.loops else (plan.a_slabs, plan.b_slabs)
    a_least = plan.a_slabs if plan.resident else 1
    b_least = plan.b_slabs if plan.passes > plan.together or plan.b_kept else 1
    ahead = _ahead(plan)
    a_slots = _slots(named, "a", a_tile, a_least, ahead * plan.a_slabs)
    b_slots = _slots(named, "b", b_tile, b_least, ahead * plan.b_slabs)
    # Columns are read from whole blocks.
    a_blocks, b_blocks = plan.a_slot.alignment, plan.b_slot.alignment
    for group in range(plan.row_par):
        rate = plan.rows / cycles
        yield Buffer(f"a{group}", plan.a_bytes, *a_slots, a_parts, True, rate, a_blocks)
    yield Buffer(
        "b",
        plan.b_bytes,
        *b_slots,
        b_parts,
        True,
        plan.pass_columns / cycles,
        b_blocks,
        readers=1 + plan.b_split,
        reports=1 + plan.b_split,
    )


def _ahead(plan: Plan) -> int:
    """Panels of each operand that are loaded ahead: two, or more where these are few vectors.

    Both have as many, so none waits for loads of the other that are not needed yet.
    """
    panel = plan.a_slabs * plan.a_bytes + plan.b_slabs * plan.b_bytes
    return max(2, ceil_div(_FLIGHT * plan.vector_bytes, panel))


def needed_buffers(
    plan: Plan,
    named: Mapping[str, int],
    collectors: Sequence[Collector],
    b_parts: int,
    a_parts: int,
    parts: int,
) -> list[Buffer]:
    """Every buffer of a plan, with its sizes and the load on its ports."""
    c_slots = _slots(named, "c", parts, 1, 2 * parts)
    c_rate = plan.result_vectors / (plan.tile_cycles * plan.read_tiles)
    # Columns are read from whole blocks.
    alignment = max(plan.out_lanes if plan.product.turned else 2, plan.out_rows)
    return [
        *_operand_buffers(plan, named, b_parts, a_parts),
        *(
            Buffer(
                each.name,
                plan.block_bytes(plan.product.out, each.groups, each.columns, parts),
                *c_slots,
                len(each.ports),
                False,
                c_rate * each.groups * each.columns,
                alignment,
            )
            for each in collectors
        ),
    ]


def _require_credits(slots: int) -> None:
    """Refuse more free slots of a load stream than its credits can count."""
    if slots > MAX_CREDITS:
        raise Unfit(
            f"Free slots of one stream must be at most {MAX_CREDITS}, not {slots}",
            value=slots,
            rule=f"at most {MAX_CREDITS} free slots of one stream",
        )


def _try(
    plan: Plan,
    named: Mapping[str, int],
    collect: tuple[int, int],
    b_parts: int,
    a_parts: int,
    a_agcus: int,
) -> Fit:
    collectors, parts = result_writers(plan, collect), pieces(plan, named)
    shares, b_agcus = operand_agcus(plan, b_parts, a_parts, a_agcus)
    # Most plans with a long chain are refused here.
    require_epilogue(plan, collectors, parts)
    buffers = needed_buffers(plan, named, collectors, b_parts, a_parts, parts)
    sides = side_loads(plan, collectors, {each for each, _, _ in shares}, set(b_agcus))
    require_in_segments(plan, shares, collectors, parts, sides)
    buffers += side_buffers(plan, collectors, parts)
    homes, slowdown = pack(plan.config, buffers)
    for _, first, groups in shares:
        if groups > MAX_MODULUS:
            raise Unfit(
                f"Row groups that one AGCU loads must be at most {MAX_MODULUS}, not {groups}",
                value=groups,
                rule=f"at most {MAX_MODULUS} row groups an AGCU",
            )
        _level(homes, [f"a{group}" for group in range(first, first + groups)])
    for side in sides:
        _level(homes, side.holds)
    _require_credits(homes["b"].slots * (1 + plan.b_split))
    return Fit(homes, shares, a_parts, b_agcus, collectors, parts, slowdown, sides)


def _level(homes: dict[str, Home], names: Sequence[str]) -> None:
    """Give the buffers of a load stream, whose boxes and freed slots alternate, as many slots.

    A slot that only some have would be a credit for a box of another, which blocks the stream.
    """
    common = min(homes[name].slots for name in names)
    homes |= {name: dataclasses.replace(homes[name], slots=common) for name in names}
    _require_credits(len(names) * common)
