"""The mark `few`: `make test` runs some cases of a parametrised test, with every value in one."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import pytest

__all__ = ["chosen"]

_T = TypeVar("_T")

#: Parameter and a number of its value, of each value of a case.
Values = frozenset[tuple[str, int]]


def chosen(cases: Sequence[tuple[_T, Values]], most: int | None, order: random.Random) -> list[_T]:
    """Cases until every value is in one, those with the most new values first; at most `most`."""
    left = order.sample(cases, len(cases))
    missing: set[tuple[str, int]] = {value for _, values in cases for value in values}
    taken: list[_T] = []
    while missing and (most is None or len(taken) < most):
        best = max(left, key=lambda case: len(case[1] & missing))
        left.remove(best)
        missing -= best[1]
        taken.append(best[0])
    return taken


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Before pytest leaves out what is slow.
    families: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("few"):
            if not item.get_closest_marker("slow"):
                families[item.nodeid.partition("[")[0]].append(item)
    for name, members in families.items():
        mark = members[0].get_closest_marker("few")
        assert mark is not None
        # All cases with a value share one object.
        values = (
            {(each, id(value)) for each, value in item.callspec.params.items()} for item in members
        )
        cases = list(zip(members, map(frozenset, values)))
        order = random.Random(f"{config.getoption('--seed-base')} {name}")
        kept = {item.nodeid for item in chosen(cases, mark.args[0] if mark.args else None, order)}
        for item in members:
            if item.nodeid not in kept:
                item.add_marker("slow")
