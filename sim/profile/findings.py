"""Findings of a profile: what held the run up, in sentences, and what would improve it."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from sim.profile.causes import Cause

__all__ = ["FULL", "LEAST", "find"]

#: Share of the cycles from which on a cause is told.
LEAST = 0.02
#: Share of busy cycles from which on arrays, or memory ports, are what bounds a run.
FULL = 0.85
_MOST = 6

_TEXTS: Mapping[str, tuple[str, str]] = {
    "memory": (
        "{who} {wait} for memory at {by}: its data come later than they are needed",
        "Let more loads be under way: more slots for the buffers of {by}, or a higher "
        "`outstanding`; larger tiles read each byte fewer times; less latency or fewer pauses of "
        "the memory",
    ),
    "port": (
        "{who} {wait} while the memory port {by} moves other data: it is at its width",
        "Move fewer bytes (larger tiles, a narrower format, parts fused into one), or spread the "
        "streams of {by} over more AGCUs",
    ),
    "slots": (
        "{who} {wait} for turns of the slots of {by}: those who fill it and those who empty it "
        "take turns, instead of working at once",
        "Give the buffers of {by} more slots (`--set slots.BUFFER=2` or more), or smaller tiles so "
        "that more fit",
    ),
    "unit": (
        "{who} {wait} for {by}, which works all the time",
        "Divide the work of {by} over more units (`row_par`, `col_par`, more `lanes`)",
    ),
    "done": (
        "{who} {have} ended, and {wait} for the end of the others",
        "Divide the work more evenly, or let the last results leave in smaller boxes",
    ),
    "launch": (
        "no kernel runs: the command processor fetches launch list, arguments and image",
        "Run the kernel more often per launch (`--warm`, `tw.repeat`), or more work per kernel",
    ),
}


def find(
    causes: Mapping[str, Mapping[Cause, int]], kinds: Mapping[str, str], cycles: int
) -> list[dict[str, Any]]:
    """Findings about the units that matter, largest first.

    These are the PCUs in use, if one of them works, else the AGCUs.

    Parameters
    ----------
    causes : mapping of str to mapping of Cause to int
        Cycles of each unit by cause.
    kinds : mapping of str to str
        Kind of each unit.
    cycles : int
        Cycles of the run.
    """
    matter = [unit for unit, found in causes.items() if found.get(Cause("busy"))]
    pcus = [unit for unit in matter if kinds[unit] == "pcu"]
    matter = pcus or [unit for unit in matter if kinds[unit] == "agcu"]
    if not matter or not cycles:
        return []
    totals: dict[Cause, float] = collections.defaultdict(float)
    for unit in matter:
        for cause, count in causes[unit].items():
            totals[cause] += count / len(matter)
    one = len(matter) == 1
    words = {
        "who": _listed(matter),
        "wait": "waits" if one else "wait",
        "have": "has" if one else "have",
    }
    found = []
    busiest = max(matter, key=lambda unit: causes[unit].get(Cause("busy"), 0))
    busy = causes[busiest].get(Cause("busy"), 0)
    work = _finding(Cause("busy", busiest), float(busy), cycles, _work(busiest, kinds), _ADVICE)
    found = [
        _finding(
            cause,
            count,
            cycles,
            *(each.format(by=cause.by, **words) for each in _TEXTS[cause.kind]),
        )
        for cause, count in totals.items()
        if cause.kind in _TEXTS and count / cycles >= LEAST
    ]
    found.sort(key=lambda each: -each["cycles"])
    first = busy / cycles >= FULL or not found
    return ([work, *found] if first else [*found, work])[:_MOST]


_ADVICE = "It is near its bound: only less work, a wider format of the cells, or more units help"


def _work(unit: str, kinds: Mapping[str, str]) -> str:
    what = "moves data" if kinds[unit] == "agcu" else "works"
    return f"{unit} {what}; no unit of its kind does so for longer"


def _listed(units: Sequence[str]) -> str:
    return (
        ", ".join(units) if len(units) <= 4 else f"{', '.join(units[:3])} and {len(units) - 3} more"
    )


def _finding(cause: Cause, count: float, cycles: int, text: str, advice: str) -> dict[str, Any]:
    share = count / cycles
    sentence = f"In {share:.0%} of the cycles {text}."
    return {
        "cause": cause.kind,
        "by": cause.by,
        "cycles": round(count, 1),
        "share": round(share, 4),
        "text": sentence,
        "advice": f"{advice}.",
    }
