"""parallel: PCU grid, blocks and K-blocks of a product, as named or by the cost model."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError
from hw.numeric.division import ceil_div
from sw.cost import predict
from sw.epilogue.side_loads import require_chain, require_streams
from sw.fabric.merges import MERGED
from sw.passes.field_limits import Unfit, require_fields, require_units
from sw.passes.fit import Fit, fit, require_results
from sw.passes.plan import Plan, fewest_rows
from sw.passes.product_recognition import Product
from sw.search.best_first import BestFirst
from sw.search.candidates import no_plan, plans_of, require_grid
from sw.search.constraints import Constraints
from sw.search.remembered import Drawn, remembered
from sw.search.rough_cost import beside_cycles, least, repeated_cycles, rough

__all__ = ["Timed", "estimate", "parallel", "repeated_estimate", "require_fit"]

#: Plans simulated K-block by K-block after all have been estimated.
_FINALISTS = 60
#: Plans simulated for a quick estimate.
_QUICK = 8
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
#: Least estimate, least number, and the plans with their estimates and numbers.
_Group = tuple[float, int, Callable[[], Iterable[tuple[float, int, Plan]]]]


def parallel(
    product: Product,
    config: ChipConfig,
    constraints: Constraints,
    timed: Timed | None = None,
    repeat: int = 1,
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
    repeat : int
        Iterations of a launch.

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
    search = _search(_Case(product, config, constraints))
    found: list[_Candidate] = []
    for number, (plan, places) in enumerate(itertools.islice(search.fitting, _FINALISTS)):
        beside = beside_cycles(plan)
        cycles = predict(plan, places) + beside + (repeat - 1) * (repeated_cycles(plan) + beside)
        if plan.grouped:
            # Passes at once must gain more than runs that count as equal differ by.
            cycles *= _EQUAL
        found.append((cycles, number, plan, places))
    found.sort(key=lambda each: each[:2])
    best: dict[object, tuple[Plan, Fit]] = {}
    for _, _, plan, places in found if timed is None else _ranked(found, timed):
        grid = (plan.row_par, plan.col_par, plan.product.turned, len(places.collectors))
        best.setdefault(grid, (plan, places))
    yield from itertools.islice(best.values(), _GRIDS)
    yield from _smaller(list(search.plans), next(iter(best.values()))[0], constraints)


def require_fit(product: Product, config: ChipConfig, constraints: Constraints) -> None:
    """Refuse a product of which no plan fits, in less time than the choice of the best plan takes.

    Raises
    ------
    BadInputError
        As `parallel` does.
    """
    if not _fits(product, config, constraints):
        next(iter(_search(_Case(product, config, constraints)).fitting))


def _fits(product: Product, config: ChipConfig, constraints: Constraints) -> bool:
    """Whether one of the plans fits, those of few PCUs and short slabs first."""
    _require_chip(product, config, constraints)
    for first, slabs in plans_of(product, config, constraints):
        if _lacks_pcus(first):
            continue
        for (a_slab, b_slab), resident in itertools.product(reversed(slabs), (True, False)):
            plan = dataclasses.replace(first, a_slab=a_slab, b_slab=b_slab, resident=resident)
            with contextlib.suppress(Unfit):
                require_fields(plan)
                fit(plan, _slots(plan, constraints))
                return True
    return False


def _require_chip(product: Product, config: ChipConfig, constraints: Constraints) -> None:
    """Refuse a PCU grid that no plan can have, and a chip with too few units for any plan."""
    require_units(config)
    require_chain(product, config)
    require_streams(product, config)
    require_grid(product, config, constraints)


def estimate(product: Product, config: ChipConfig, constraints: Constraints) -> int:
    """Cycles of a product by the cost model, in less time than the choice of its plan takes.

    Raises
    ------
    BadInputError
        As `parallel` does.
    """
    return _estimated(_Case(product, config, constraints))


def repeated_estimate(product: Product, config: ChipConfig, constraints: Constraints) -> float:
    """Cycles of one of many iterations of a product, of the best one of a few plans.

    Raises
    ------
    BadInputError
        As `parallel` does.
    """
    plans = _search(_Case(product, config, constraints)).fitting
    return min(repeated_cycles(plan) for plan, _ in itertools.islice(plans, _QUICK))


def _ranked(found: list[_Candidate], timed: Timed) -> list[_Candidate]:
    """Candidates, best first by the cost model: those about as good as the first, by timed runs."""
    close: dict[str, _Candidate] = {}
    work = 0.0
    for each in found:
        cycles, _, plan, _ = each
        # Where memory has time to spare, streaming A costs nothing and gains nothing, and slabs of
        # other lengths little: of plans that differ in these alone the first is run.
        key = dataclasses.replace(plan, resident=True, a_slab=1, b_slab=1).describe()
        if key in close:
            continue
        work += cycles * plan.row_par * plan.col_par + _PACKET_WORK * plan.lane_packets
        if cycles > _CLOSE * found[0][0] or work > _TIMED_WORK or len(close) == _TIMED_PLANS:
            break
        close[key] = each
    if len(close) < 2:
        return found
    runs = {each[1]: timed(*each[2:]) for each in close.values()}
    ended = {number: cycles for number, cycles in runs.items() if cycles is not None}
    most = _EQUAL * min(ended.values(), default=0)
    return sorted(found, key=lambda each: ended.get(each[1], most + 1) > most)


def _lacks_pcus(plan: Plan) -> bool:
    """Whether the PCUs that a grid leaves are too few for the lane programs behind it for sure."""
    epilogue, grid = plan.product.epilogue, plan.row_par * plan.col_par
    chain = len(epilogue.chain) if epilogue else 0
    return grid + ceil_div(grid, MERGED) * chain > plan.config.pcu_count


def _nearer(one: Unfit | None, other: Unfit) -> Unfit:
    """The refusal closer to its limit; of two different rules the later one, of smaller plans."""
    return one if one and one.rule == other.rule and one.value <= other.value else other


@dataclasses.dataclass(frozen=True)
class _Case:
    """All that the plans of a product depend on."""

    product: Product
    config: ChipConfig
    constraints: Constraints

    def __hash__(self) -> int:
        product = self.product
        return hash((product.kernel, product.m, product.n, product.k, self.config))


@remembered
def _search(case: _Case) -> _Search:
    """The search of a case: an estimate and the choice of a plan share it."""
    return _Search(case.product, case.config, case.constraints)


@remembered
def _estimated(case: _Case) -> int:
    plans = _search(case).fitting
    return min(predict(plan, places) for plan, places in itertools.islice(plans, _QUICK))


class _Search:
    """Search for the plans of a product: lazy lists, best estimate first.

    Raises
    ------
    BadInputError
        If no plan can have the PCU grid of a schedule, or the chip has too few units for any.
    """

    def __init__(self, product: Product, config: ChipConfig, constraints: Constraints) -> None:
        _require_chip(product, config, constraints)
        self._product, self._config, self._constraints = product, config, constraints
        self._tried = 0
        #: Refusals: of results and loops, by the number of the plan, before those of buffers.
        self._refused: list[tuple[bool, int, Unfit]] = []
        groups = plans_of(product, config, constraints)
        if product.m <= 2 * fewest_rows(config) and product.turns:
            # Weights for few rows take longer to load than to use.
            turned = plans_of(product.turn(), config, constraints.turn())
            groups = itertools.chain(groups, turned)
        #: The plans whose loops fit their fields.
        self.plans = Drawn(BestFirst(group for each in groups for group in self._groups(*each)))
        #: Those that fit, with their buffers; a refusal if there is none.
        self.fitting = Drawn(self._all_fitting())

    def _groups(self, first: Plan, slabs: Sequence[tuple[int, int]]) -> Iterator[_Group]:
        """Plans that differ in slabs alone, as `BestFirst` takes them."""
        start, stop = self._tried, self._tried + 2 * len(slabs)
        self._tried = stop
        for number, resident in enumerate((True, False), start):
            plan = dataclasses.replace(first, resident=resident)
            opened = functools.partial(self._opened, plan, range(number, stop, 2), slabs)
            yield math.inf if _lacks_pcus(plan) else least(plan), number, opened

    def _opened(
        self, first: Plan, numbers: Sequence[int], slabs: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[float, int, Plan]]:
        """The plans of a group whose loops fit their fields, with their estimates and numbers."""
        try:
            require_results(first, _slots(first, self._constraints))
        except Unfit as error:
            self._refuse(first, error, numbers[0])
            return
        for number, (a_slab, b_slab) in zip(numbers, slabs, strict=True):
            plan = dataclasses.replace(first, a_slab=a_slab, b_slab=b_slab)
            try:
                require_fields(plan)
            except Unfit as error:
                self._refuse(plan, error, number)
                continue
            yield rough(plan), number, plan

    def _refuse(self, plan: Plan, error: Unfit, number: int, *, buffers: bool = False) -> None:
        # A refusal speaks of the product as the program has it.
        if not plan.product.turned:
            self._refused.append((buffers, number, error))

    def _all_fitting(self) -> Iterator[tuple[Plan, Fit]]:
        """The plans of which buffer allocation has room, or the refusal if there is none."""
        found = False
        for number, plan in enumerate(self.plans):
            try:
                places = fit(plan, _slots(plan, self._constraints))
            except Unfit as error:
                self._refuse(plan, error, number, buffers=True)
            else:
                found = True
                yield plan, places
        if not found:
            raise self._refusal()

    def _refusal(self) -> BadInputError:
        """Why none fits; the message names what is needed and what there is."""
        refused = sorted(self._refused, key=lambda each: each[:2])
        problem = functools.reduce(_nearer, (error for *_, error in refused), None)
        if problem is None:
            return no_plan(self._product, self._config)
        return BadInputError(
            f"`{self._product.kernel}` must fit the chip; {problem}",
            kind="does-not-fit",
            where=self._product.kernel,
            value=problem.value,
            rule=f"{problem.rule}: a smaller tile, fewer slots, or a chip with more scratchpad",
        )


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
