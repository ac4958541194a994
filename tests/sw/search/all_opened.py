"""Exhaustive search in place of branch and bound: all groups are opened, all bounds checked."""


class AllOpened:
    """Items of all groups, least cost first, as of `sw.search.best_first.BestFirst`."""

    def __init__(self, groups):
        items = []
        for bound, _, group in groups:
            for cost, number, item in group():
                assert bound <= cost
                items.append((cost, number, item))
        items.sort(key=lambda each: each[:2])
        self._items = iter([item for *_, item in items])

    def __iter__(self):
        return self._items
