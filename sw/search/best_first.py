"""Items of groups in the order of their costs; a group is opened when its bound comes in turn."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["BestFirst"]

_Item = TypeVar("_Item")


class BestFirst(Generic[_Item]):
    """Iterator over the items of groups, least cost first, of equal ones the least number.

    Branch and bound: a group whose bound is not reached is never opened.

    Parameters
    ----------
    groups : iterable of (float, int, callable)
        Of each group a bound, which no item costs less than, the least number of its items, and a
        function that returns its items with their costs and numbers. No two items have a number.
    """

    def __init__(
        self, groups: Iterable[tuple[float, int, Callable[[], Iterable[tuple[float, int, _Item]]]]]
    ) -> None:
        #: Bound or cost, number, a group before an item, then the group or the item.
        self._heap: list[tuple[float, int, bool, int]] = []
        self._groups: list[Callable[[], Iterable[tuple[float, int, _Item]]]] = []
        self._items: dict[int, _Item] = {}
        for bound, number, opened in groups:
            self._heap.append((bound, number, False, len(self._groups)))
            self._groups.append(opened)
        heapq.heapify(self._heap)

    def __iter__(self) -> Iterator[_Item]:
        return self

    def __next__(self) -> _Item:
        while self._heap:
            _, number, is_item, group = heapq.heappop(self._heap)
            if is_item:
                return self._items.pop(number)
            for cost, own, item in self._groups[group]():
                self._items[own] = item
                heapq.heappush(self._heap, (cost, own, True, group))
        raise StopIteration
