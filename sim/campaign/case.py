"""Test cases as one line of JSON, and their verdicts."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Fields", "Verdict", "chip_of_case", "command", "generator", "line", "merged"]

#: Fields of a case: plain data.
Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Verdict on a case.

    Parameters
    ----------
    outcome : str
        Class of the outcome: ``"right"``, ``"refused"``, ``"error"``, ``"hang"`` and others.
    problems : tuple of str
        Failures, one line each; empty if the case passed.
    bins : frozenset of str
        Feature bins that it covered.
    counts : mapping of str to int
        Its contributions to the totals of a run.
    """

    outcome: str
    problems: tuple[str, ...] = ()
    bins: frozenset[str] = frozenset()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


def chip_of_case(fields: Fields) -> Any:
    """Chip of a case: the name of a configuration, or all its fields."""
    part: Fields = fields["programs"][0] if "programs" in fields else fields.get("program", fields)
    return part["chip"]


def line(fields: Fields) -> str:
    """Serialise a case on one line."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def command(fields: Fields) -> str:
    """Shell command that repeats a case."""
    return f"python -m sim.campaign --case '{line(fields)}'"


def generator(*parts: object) -> random.Random:
    """Random generator for a seed, a kind and a number."""
    return random.Random(" ".join(map(str, parts)))


def merged(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sum of the totals of several cases."""
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
