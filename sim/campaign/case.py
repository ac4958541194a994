"""A case as one line of JSON, and the verdict on it."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Fields", "Verdict", "command", "generator", "line", "merged"]

#: What a case holds: plain data.
Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a case showed.

    Parameters
    ----------
    outcome : str
        Class of the case: ``"right"``, ``"refused"``, ``"error"``, ``"hang"`` and so on.
    problems : tuple of str
        What is wrong, one line each; empty if nothing is.
    bins : frozenset of str
        Feature bins that it met.
    counts : mapping of str to int
        What it adds to the figures of a run.
    """

    outcome: str
    problems: tuple[str, ...] = ()
    bins: frozenset[str] = frozenset()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


def line(fields: Fields) -> str:
    """The case on one line."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def command(fields: Fields) -> str:
    """The command that repeats the case."""
    return f"python -m sim.campaign --case '{line(fields)}'"


def generator(*parts: object) -> random.Random:
    """Generator of its own for a seed, a kind and a number."""
    return random.Random(" ".join(map(str, parts)))


def merged(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sum of figures."""
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
