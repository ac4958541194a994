"""Garbage collection while millions of objects are made that stay."""

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["few_collections"]

#: Objects that are made, less those freed, from one collection to the next.
_OBJECTS = 1_000_000


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Collect cyclic garbage rarely: each collection looks at all objects so far."""
    former = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *former[1:])
    try:
        yield
    finally:
        gc.set_threshold(*former)
