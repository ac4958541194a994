"""Branch and bound over plans: the order of a full sort, and bounds below every estimate."""

import dataclasses
import itertools
import random

import pytest

from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16, fp32, int8, int32
from sw.search.best_first import BestFirst
from sw.search.candidates import plans_of
from sw.search.constraints import Constraints
from sw.search.rough_cost import least, rough
from tests.sw.passes.test_units import product

_CHIPS = {**named, "four AGCUs": ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=4))}


def test_items_come_as_from_a_stable_sort_and_far_groups_stay_closed():
    rng = random.Random(5)
    costs = [[rng.randrange(12 + group) for _ in range(6)] for group in range(40)]
    opened, numbers = [], itertools.count()

    def open_group(group, items):
        opened.append(group)
        return items

    groups = []
    for group, each in enumerate(costs):
        items = [(cost, next(numbers), (cost, group)) for cost in each]
        bound = min(each) - rng.randrange(2)
        groups.append(
            (bound, items[0][1], lambda group=group, items=items: open_group(group, items))
        )
    groups.append((90, next(numbers), lambda: open_group(40, [])))
    search = BestFirst(groups)
    wanted = sorted(((cost, group) for group, each in enumerate(costs) for cost in each))
    assert [next(search) for _ in wanted] == wanted
    assert 40 not in opened and len(opened) == 40
    assert next(search, None) is None and 40 in opened


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", _CHIPS)
def test_bounds_are_below_the_estimates_of_their_plans(chip):
    """Random products, along and across k, turned ones among them; most bounds are near."""
    rng = random.Random(chip)
    shares = []
    for number in range(12):
        m, n, k = (round(2 ** rng.uniform(0, 10)) for _ in range(3))
        fmt, out = rng.choice([(bf16, bf16), (bf16, fp32), (int8, int32)])
        wanted = product(m, n, k, fmt, out, rng.random() < 0.5, rng.random() < 0.5)
        wanted = wanted.turn() if number % 4 == 0 else wanted
        groups = list(plans_of(wanted, _CHIPS[chip], Constraints()))
        for first, slabs in rng.sample(groups, min(40, len(groups))):
            for resident in (True, False):
                one = dataclasses.replace(first, resident=resident)
                every = (dataclasses.replace(one, a_slab=a, b_slab=b) for a, b in slabs)
                best = min(map(rough, every))
                assert least(one) <= best, one.describe()
                shares.append(least(one) / best)
    assert sorted(shares)[len(shares) // 2] > 0.8
