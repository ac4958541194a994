"""Few cases of a parametrised test have every value; which ones depends on the seed alone."""

import itertools
import random

import pytest

from tests.few_cases import chosen

CASES = [
    (f"{a}{b}{c}", frozenset({("a", a), ("b", b), ("c", c)}))
    for a, b, c in itertools.product(range(4), range(3), range(2))
]


@pytest.mark.parametrize("seed", range(20))
def test_every_value_is_in_a_case_and_few_cases_are_taken(seed):
    taken = chosen(CASES, None, random.Random(seed))
    assert [set(values) for values in zip(*taken)] == [set("0123"), set("012"), set("01")]
    assert len(taken) == 4
    assert taken == chosen(CASES, None, random.Random(seed))


def test_other_seeds_take_other_cases():
    assert len({tuple(chosen(CASES, None, random.Random(seed))) for seed in range(20)}) > 10


def test_no_more_are_taken_than_allowed():
    assert len(chosen(CASES, 2, random.Random(1))) == 2


@pytest.mark.few
@pytest.mark.parametrize("one", range(3))
@pytest.mark.parametrize("other", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_of_a_product_some_cases_are_slow(one, other, request):
    """A case that is slow by itself is never one of the few."""
    items = [each for each in request.session.items if each.path == request.node.path]
    family = [each for each in items if each.name.startswith("test_of_a_product")]
    quick = [each for each in family if not each.get_closest_marker("slow")]
    assert {each.callspec.params["other"] for each in quick} <= {0, 1}
    if len(quick) > 1:
        assert len(quick) == 3 and {each.callspec.params["one"] for each in quick} == {0, 1, 2}
