"""Caches of the searches of one compilation, and lists that are computed as they are read."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, ParamSpec, TypeVar, cast

from hw.arch.errors import BadInputError

__all__ = ["Drawn", "forget_searches", "remembered"]

_Item = TypeVar("_Item")
_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")

#: Answers of a function that are remembered.
_MOST = 256
_CACHES: list[Any] = []


class Drawn(Generic[_Item]):
    """A lazy list: items of an iterator, each computed once and shared by all readers.

    Parameters
    ----------
    items : iterable
        A refusal that it raises ends it, and is raised for each reader.
    """

    def __init__(self, items: Iterable[_Item]) -> None:
        self._rest = iter(items)
        self._items: list[_Item] = []
        self._refusal: BadInputError | None = None

    def __iter__(self) -> Iterator[_Item]:
        for number in itertools.count():
            if number == len(self._items):
                self._draw()
            if number == len(self._items):
                return
            yield self._items[number]

    def _draw(self) -> None:
        """Draw one item more, if there is one."""
        if self._refusal is not None:
            raise self._refusal
        try:
            self._items += itertools.islice(self._rest, 1)
        except BadInputError as refusal:
            self._refusal = refusal
            raise


def remembered(search: Callable[_Asked, _Answer]) -> Callable[_Asked, _Answer]:
    """A function whose last answers are kept until `forget_searches`; its arguments have hashes."""
    cached = functools.lru_cache(maxsize=_MOST)(search)
    _CACHES.append(cached)
    return cast(Callable[_Asked, _Answer], cached)


def forget_searches() -> None:
    """Forget the answers of an earlier compilation, and all that they keep."""
    for each in _CACHES:
        each.cache_clear()
