"""parallel: PCU grid, blocks and K-blocks of a product, as named or by the cost model."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping

from hw.arch.config import ChipConfig
from hw.arch.descriptor import BASE_ALIGNMENT, MAX_BOX
from hw.arch.errors import BadInputError
from hw.arch.limits import MAX_MODULUS
from hw.numeric.division import ceil_div
from sw.cost import SLACK, predict, rough
from sw.epilogue.side_loads import require_chain
from sw.passes.field_limits import Unfit, require_fields, require_units
from sw.passes.fit import Fit, fit
from sw.passes.plan import Plan, fewest_rows
from sw.passes.stage import Product

__all__ = ["Constraints", "Timed", "parallel", "require_fit"]

#: Plans simulated K-block by K-block after all have been estimated.
_FINALISTS = 60
#: Most PCU grids that are returned.
_GRIDS = 3
#: Plans about as good as the best take at most this much longer by the cost model.
_CLOSE = 1.01
#: Of those runs, one that takes this much longer counts as no slower: the earlier plan is taken.
_EQUAL = 1.005
#: Most of them that are run with a clock, and most cycles of their PCUs, which take about 2 s.
_TIMED_PLANS, _TIMED_WORK = 4, 320_000
#: A packet that a lane program of an epilogue takes is as much work of such a run as these cycles.
_PACKET_WORK = 30

#: Cycles of a plan, by a run with a clock.
Timed = Callable[[Plan, Fit], int | None]
#: Cycles by the cost model, number, plan, buffers.
_Candidate = tuple[float, int, Plan, Fit]


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Constraints on a plan: what the schedule requires, and the program's block sizes and slots.

    Parameters
    ----------
    row_tile, column_tile, sum_tile : int or None
        Block sizes.
    row_par, col_par : int or None
        Units over which the schedule splits rows and columns.
    named : set of str
        Those of ``row_tile`` and ``column_tile`` that the schedule names.
    slots : mapping of str to int
        Tiles in the buffers ``a``, ``b``, ``c``.
    """

    row_tile: int | None = None
    column_tile: int | None = None
    sum_tile: int | None = None
    row_par: int | None = None
    col_par: int | None = None
    named: frozenset[str] = frozenset()
    slots: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def turn(self) -> Constraints:
        """Constraints on the product of the transposes, whose loops are not the program's."""
        rows, columns = (
            getattr(self, name) if name in self.named else None
            for name in ("row_tile", "column_tile")
        )
        keys = {"a": "b", "b": "a", "c": "c"}
        return Constraints(
            row_tile=columns,
            column_tile=rows,
            sum_tile=self.sum_tile,
            row_par=self.col_par,
            col_par=self.row_par,
            slots={keys[name]: count for name, count in self.slots.items()},
        )


def parallel(
    product: Product, config: ChipConfig, constraints: Constraints, timed: Timed | None = None
) -> Iterator[tuple[Plan, Fit]]:
    """Choose how a product is distributed over a chip.

    Parameters
    ----------
    product : Product
    config : ChipConfig
    constraints : Constraints
    timed : callable, optional
        Cycles of a plan by a run with a clock; None if it cannot be routed. The plans that are
        about as good as the best one by the cost model are compared by it, as far as that is quick.

    Yields
    ------
    (Plan, Fit)
        The best plan; then, in case it cannot be routed, the best of other grids and plans with
        fewer and fewer streams.

    Raises
    ------
    BadInputError
        If no plan fits; the message names what is needed and what there is.
    """
    require_units(config)
    require_chain(product, config)
    plans, problem = _legal(product, config, constraints)
    found: list[_Candidate] = []
    for number, plan in enumerate(plans):
        try:
            places = fit(plan, _slots(plan, constraints))
        except Unfit as error:
            # A refusal speaks of the product as the program has it.
            problem = problem if plan.product.turned else _nearer(problem, error)
            continue
        cycles = predict(plan, places) + plan.grid_cycles / SLACK
        found.append((cycles, number, plan, places))
        if len(found) == _FINALISTS:
            break
    found.sort(key=lambda each: each[:2])
    best: dict[object, tuple[Plan, Fit]] = {}
    for _, _, plan, places in found if timed is None else _ranked(found, timed):
        grid = (plan.row_par, plan.col_par, plan.product.turned, len(places.collectors))
        best.setdefault(grid, (plan, places))
    yield from itertools.islice(best.values(), _GRIDS)
    if best:
        yield from _smaller(plans, next(iter(best.values()))[0], constraints)
    else:
        assert problem is not None
        raise BadInputError(
            f"`{product.kernel}` must fit the chip; {problem}",
            kind="does-not-fit",
            where=product.kernel,
            value=problem.value,
            rule=f"{problem.rule}: a smaller tile, fewer slots, or a chip with more scratchpad",
        )


def require_fit(product: Product, config: ChipConfig, constraints: Constraints) -> None:
    """Refuse a product of which no plan fits, in less time than the choice of the best plan takes.

    Raises
    ------
    BadInputError
        As `parallel` does.
    """
    require_units(config)
    require_chain(product, config)
    _require_grid(product, config, constraints)
    for plan in _plans(product, config, constraints):
        with contextlib.suppress(Unfit):
            require_fields(plan)
            fit(plan, _slots(plan, constraints))
            return
    next(parallel(product, config, constraints))


def _ranked(found: list[_Candidate], timed: Timed) -> list[_Candidate]:
    """Candidates, best first by the cost model: those about as good as the first, by timed runs."""
    close: dict[str, _Candidate] = {}
    work = 0.0
    for each in found:
        cycles, _, plan, _ = each
        # Where memory has time to spare, streaming A costs nothing and gains nothing.
        text = dataclasses.replace(plan, resident=True).describe()
        if text in close:
            continue
        work += cycles * plan.row_par * plan.col_par + _PACKET_WORK * plan.lane_packets
        if cycles > _CLOSE * found[0][0] or work > _TIMED_WORK or len(close) == _TIMED_PLANS:
            break
        close[text] = each
    if len(close) < 2:
        return found
    runs = {each[1]: timed(*each[2:]) for each in close.values()}
    ended = {number: cycles for number, cycles in runs.items() if cycles is not None}
    most = _EQUAL * min(ended.values(), default=0)
    return sorted(found, key=lambda each: ended.get(each[1], most + 1) > most)


def _nearer(one: Unfit | None, other: Unfit) -> Unfit:
    """The refusal closer to its limit; of two different rules the later one, of smaller plans."""
    return one if one and one.rule == other.rule and one.value <= other.value else other


def _legal(
    product: Product, config: ChipConfig, constraints: Constraints
) -> tuple[list[Plan], Unfit | None]:
    """Plans whose loops fit their fields, best estimate first, and the nearest refusal."""
    _require_grid(product, config, constraints)
    plans, problem = [], None
    tried = _plans(product, config, constraints)
    if product.m <= 2 * fewest_rows(config) and product.epilogue is None:
        # Weights for few rows take longer to load than to use.
        tried = itertools.chain(tried, _plans(product.turn(), config, constraints.turn()))
    for plan in tried:
        try:
            require_fields(plan)
        except Unfit as error:
            problem = problem if plan.product.turned else _nearer(problem, error)
            continue
        plans.append(plan)
    return sorted(plans, key=rough), problem


def _smaller(
    plans: list[Plan], first: Plan, constraints: Constraints
) -> Iterator[tuple[Plan, Fit]]:
    """Plans with fewer and fewer streams, in case the links carry none of the best."""
    most = first.row_par * first.col_par
    tried = [first]
    while tried:
        for plan in tried:
            with contextlib.suppress(Unfit):
                places = fit(plan, _slots(plan, constraints), plain=True)
                most = plan.row_par * plan.col_par // 2
                yield plan, places
                break
        else:
            most //= 2
        tried = [each for each in plans if each.row_par * each.col_par <= most]


def _slots(plan: Plan, constraints: Constraints) -> Mapping[str, int]:
    """Slots named for the buffers of a plan."""
    return (constraints.turn() if plan.product.turned else constraints).slots


def _bad(field: str, rule: str, value: object) -> BadInputError:
    return BadInputError(
        f"{field} must be {rule}, not {value}", kind="schedule", where=field, value=value, rule=rule
    )


def _widths(product: Product, config: ChipConfig) -> list[int]:
    """Columns that a PCU grid may have."""
    # The columns of a pass are loaded in one box.
    most = min(config.pcu_count, MAX_MODULUS, MAX_BOX // config.grid_columns)
    # The weights of a pass are whole vectors of a row of B, or a part that divides a vector.
    lanes = config.width_bits // product.fmt.bits
    return [
        each
        for each in range(1, most + 1)
        if not each & (each - 1) or not each * config.grid_columns % lanes
    ]


def _require_grid(product: Product, config: ChipConfig, constraints: Constraints) -> None:
    """Refuse a schedule whose PCU grid no plan can have.

    Raises
    ------
    BadInputError
        With the grids there are.
    """
    pcus, widths = _grid_pcus(product, config), _widths(product, config)
    rows, columns = constraints.row_par, constraints.col_par
    names = f"of `{product.product}`" if product.product else "of the product"
    if columns is not None and columns not in widths:
        raise _bad(f"col_par {names}", f"one of {', '.join(map(str, widths))}", columns)
    if (rows or 1) * (columns or 1) > pcus:
        taken = config.pcu_count - pcus
        others = f" less {taken} for element math behind the product" if taken else ""
        raise _bad(
            f"row_par x col_par {names}",
            f"at most the chip's {config.pcu_count} PCUs{others}",
            f"{rows or 1} x {columns or 1}",
        )


def _grid_pcus(product: Product, config: ChipConfig) -> int:
    """PCUs left for the grid beside lane programs behind the product."""
    chain = () if product.epilogue is None else product.epilogue.chain
    return config.pcu_count - len(chain)


def _grids(product: Product, config: ChipConfig, constraints: Constraints) -> list[tuple[int, int]]:
    """PCU grids to try: rows and columns."""
    pcus, rows, columns = _grid_pcus(product, config), constraints.row_par, constraints.col_par
    found = [
        (row, column)
        for column in _widths(product, config)
        if columns in (None, column)
        for row in ([rows] if rows else range(1, min(pcus // column, MAX_MODULUS) + 1))
        if row * column <= pcus
    ]
    # Grids with units that would only process padding are left out.
    groups = ceil_div(product.n, config.grid_columns)
    useful = [each for each in found if constraints.col_par or each[1] < 2 * groups]
    return useful or found


def _plans(product: Product, config: ChipConfig, constraints: Constraints) -> Iterator[Plan]:
    """Plans to try."""
    lanes = config.width_bits // product.fmt.bits
    most_rows = min(config.pcu.accumulator_rows, MAX_BOX)
    row_tile = min(constraints.row_tile or product.m, product.m)
    column_tile = min(constraints.column_tile or MAX_BOX, product.n)
    covers = ceil_div(product.k, lanes)
    for row_par, col_par in _grids(product, config, constraints):
        least_blocks = max(ceil_div(product.m, row_tile), ceil_div(product.m, row_par * most_rows))
        shapes = set()
        for factor in (1, 2, 3, 4, 6, 8, 12, 16, 32):
            rows = ceil_div(product.m, row_par * least_blocks * factor)
            unit = _row_unit(product, config)
            if unit > 1:
                rows = ceil_div(rows, unit) * unit
                if product.turned and constraints.row_tile and row_par * rows > max(row_tile, unit):
                    continue
            elif row_par == 1 and config.agcu.count > 1 and rows > 1:
                rows += rows & 1
            if product.epilogue is not None:
                rows = ceil_div(rows, product.epilogue.rows) * product.epilogue.rows
            if rows > most_rows or (factor > 1 and rows < min(fewest_rows(config), 16)):
                continue
            groups = min(row_par, ceil_div(product.m, rows))
            shapes.add((groups, rows, ceil_div(product.m, groups * rows)))
        across = _columns(config, col_par, lanes, column_tile, product)
        for groups, rows, blocks in sorted(shapes):
            for columns, slabs, resident in itertools.product(
                across,
                _slabs(covers, lanes, constraints),
                (True, False),
            ):
                yield Plan(
                    product, config, groups, col_par, rows, blocks, *columns, *slabs, resident
                )


def _row_unit(product: Product, config: ChipConfig) -> int:
    """Rows of which a group has a multiple: whole vectors, where they lie along rows in memory."""
    formats = (product.fmt,) * (not product.a_along_k) + (product.out,) * product.turned
    if not formats:
        return 1
    # Several AGCUs begin at rows of their own, which is an aligned address.
    aligned = 8 * BASE_ALIGNMENT if config.agcu.count > 1 else 0
    return max(config.width_bits, aligned) // min(each.bits for each in formats)


def _columns(
    config: ChipConfig, col_par: int, lanes: int, tile: int, product: Product
) -> list[tuple[int, int, int]]:
    """Candidates for passes, halves and number of column blocks."""
    n, width = product.n, col_par * config.grid_columns
    if product.turned:
        # A slot of C has one pass, whose columns are rows of memory.
        stride = width if product.b_along_k else max(width, lanes)
        blocks = ceil_div(n, stride)
        halves = stride // width
        return [(1, halves if blocks > 1 else min(halves, ceil_div(n, width)), blocks)]
    stride = max(width, lanes, config.width_bits // product.narrowest)
    found = {}
    for shift in range(9):
        passes = ceil_div(tile, stride) >> shift
        if not passes:
            break
        passes = min(passes, MAX_BOX // stride)
        blocks = ceil_div(n, passes * stride)
        halves = stride // width
        if blocks == 1 and passes == 1:
            halves = min(halves, ceil_div(n, width))
        found[passes] = (passes, halves, blocks)
    return list(found.values())


def _slabs(covers: int, lanes: int, constraints: Constraints) -> list[tuple[int, int, int]]:
    """Candidates for the tiles of the sum, padded, and the tiles per slot of A and of B."""
    most = MAX_BOX // lanes
    found: dict[tuple[int, int, int], None] = {}
    # An extent with few divisors is padded to one with more, if that is cheap.
    for tiles in dict.fromkeys((covers, covers + covers % 2, ceil_div(covers, 4) * 4)):
        if tiles > covers and 16 * (tiles - covers) > covers and covers <= most:
            continue
        divisors = [each for each in range(min(tiles, most), 0, -1) if not tiles % each]
        if constraints.sum_tile is not None:
            wanted = max(1, ceil_div(constraints.sum_tile, lanes))
            divisors = [max(each for each in divisors if each <= wanted)]
        choices = {}
        for name in "ab":
            # A single slot holds the whole tile, if a box can be that long.
            whole = (
                constraints.slots.get(name) == 1 and tiles <= most and constraints.sum_tile is None
            )
            choices[name] = [tiles] if whole else divisors[:5]
        for a_slab, b_slab in itertools.product(choices["a"], choices["b"]):
            found[tiles, a_slab, b_slab] = None
    return list(found)
