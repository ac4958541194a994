"""Findings of a profile: what held the run up, in sentences, and what would improve it."""

from __future__ import annotations

import collections
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sim.profile.causes import FULL, Cause

__all__ = ["LARGE", "LEAST", "find"]

#: Share of the cycles from which on a cause is told.
LEAST = 0.02
#: Share of the cycles above which a wait is told before the work of the busiest unit.
LARGE = 0.1
_MOST = 6
#: Share of the largest that others of its kind must hold up to be named beside it.
_LIKE = 0.5

_TEXTS: Mapping[str, tuple[str, str]] = {
    "memory": (
        "{who} {wait} for memory at {by}: data, or answers, come later than they are needed",
        "Let more loads be under way: more slots for the buffers of {by}, or a higher "
        "`outstanding`; larger tiles read each byte fewer times; less latency or fewer pauses of "
        "the memory",
    ),
    "port": (
        "{who} {wait} while the memory {ports} {by} {moves} other data",
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
        "{who} {wait} for {by}, which {works} meanwhile",
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


#: What shortens the work of a PCU, by what of it is busy.
_SHORTENED: Mapping[str, str] = {
    "cells": "less work, a format of fewer bits, or more PCUs (`row_par`, `col_par`)",
    "lanes": "less work, more `lanes` per PCU, or more PCUs (`row_par`, `col_par`)",
}


def find(
    causes: Mapping[str, Mapping[Cause, int]],
    kinds: Mapping[str, str],
    cycles: int,
    by_lanes: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Findings about the units that matter.

    These are the PCUs in use, if one of them works, else the AGCUs. Waits of more than `LARGE` come
    before the work of the busiest unit and others behind it, each of them the largest first.

    Parameters
    ----------
    causes : mapping of str to mapping of Cause to int
        Cycles of each unit by cause.
    kinds : mapping of str to str
        Kind of each unit.
    cycles : int
        Cycles of the run.
    by_lanes : collection of str
        PCUs whose lanes are busy, not their cells.
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
    busiest = _busiest(causes, kinds, pcus, cycles)
    busy = _busy(causes[busiest])
    work = _finding(
        Cause("busy", busiest),
        float(busy),
        cycles,
        *_work(causes, kinds, cycles, busiest, by_lanes),
    )
    found = []
    for kind, by in _by_kind(totals).items():
        held = sum(by.values())
        if held / cycles >= LEAST:
            own = words | _who_holds(by)
            texts = (each.format(**own) for each in _TEXTS[kind])
            found.append(_finding(Cause(kind, next(iter(by))), held, cycles, *texts))
    found.append(work)
    found.sort(key=lambda each: (_before_work(each, busy), each["cycles"]), reverse=True)
    return found[:_MOST]


def _busiest(
    causes: Mapping[str, Mapping[Cause, int]],
    kinds: Mapping[str, str],
    pcus: Sequence[str],
    cycles: int,
) -> str:
    """The busiest PCU, if it is at its bound, or the busiest of PCUs and AGCUs."""

    def busy(unit: str) -> int:
        return _busy(causes[unit])

    first = max(pcus, key=busy, default=None)
    if first is not None and _is_bound(causes[first], cycles):
        return first
    return max((unit for unit in causes if kinds[unit] in ("pcu", "agcu")), key=busy)


def _busy(own: Mapping[Cause, int]) -> int:
    return own.get(Cause("busy"), 0)


def _is_bound(own: Mapping[Cause, int], cycles: int) -> bool:
    """Whether a unit works in nearly all cycles of the kernel."""
    return _busy(own) > FULL * (cycles - own.get(Cause("launch"), 0))


def _work(
    causes: Mapping[str, Mapping[Cause, int]],
    kinds: Mapping[str, str],
    cycles: int,
    busiest: str,
    by_lanes: Collection[str],
) -> tuple[str, str]:
    """Text and advice about the work of the busiest unit."""
    if kinds[busiest] == "agcu":
        text = f"{busiest} moves data; no other PCU or AGCU is busy for longer"
        return text, _TEXTS["port"][1].format(by=busiest)
    ports = (unit for unit in causes if kinds[unit] == "agcu")
    port = max(ports, key=lambda unit: _busy(causes[unit]), default=busiest)
    others = "no other PCU or AGCU is busy for longer"
    if _busy(causes[port]) > _busy(causes[busiest]):
        others = f"no other PCU is busy for longer, but {port} moves data in "
        others += f"{_percent(_busy(causes[port]) / cycles)}"
    side = "lanes" if busiest in by_lanes else "cells"
    advice = f"It takes {_SHORTENED[side]} to shorten its work"
    if _is_bound(causes[busiest], cycles):
        advice = f"It is near its bound: only {_SHORTENED[side]} help"
    return f"the {side} of {busiest} work; {others}", advice


def _before_work(finding: Mapping[str, Any], busy: int) -> int:
    """Rank of a finding: 2 before the work of the busiest unit, 0 behind it, 1 for that itself."""
    if finding["cause"] == "busy":
        return 1
    if finding["cause"] == "launch":
        return 2 if finding["cycles"] > busy else 0
    return 2 if finding["share"] > LARGE else 0


def _by_kind(totals: Mapping[Cause, float]) -> dict[str, dict[str, float]]:
    """Cycles of each kind of cause that has a text, by the unit that holds, largest first."""
    found: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for cause, count in sorted(totals.items(), key=lambda each: -each[1]):
        if cause.kind in _TEXTS:
            found[cause.kind][cause.by] = count
    return found


def _who_holds(by: Mapping[str, float]) -> dict[str, str]:
    """Words for those who hold the others up: the one that does so most, and its like."""
    most = max(by.values())
    units = [unit for unit, count in by.items() if count >= _LIKE * most]
    one = len(units) == 1
    return {
        "by": _listed(units),
        "works": "works" if one else "work",
        "moves": "moves" if one else "move",
        "ports": "port" if one else "ports",
    }


def _listed(units: Sequence[str]) -> str:
    return (
        ", ".join(units) if len(units) <= 4 else f"{', '.join(units[:3])} and {len(units) - 3} more"
    )


def _percent(share: float) -> str:
    """Whole percent, halves rounded up as on the page."""
    return f"{math.floor(100 * share + 0.5)}%"


def _finding(cause: Cause, count: float, cycles: int, text: str, advice: str) -> dict[str, Any]:
    share = round(count / cycles, 4)
    sentence = f"In {_percent(share)} of the cycles {text}."
    return {
        "cause": cause.kind,
        "by": cause.by,
        "cycles": round(count, 1),
        "share": share,
        "text": sentence,
        "advice": f"{advice}.",
    }
