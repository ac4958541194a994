"""Timeline of a profile as trace events, the JSON that Perfetto and Chrome open."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hw.arch.counters import ACTIVITIES

__all__ = ["trace_of"]


def trace_of(profile: Mapping[str, Any]) -> str:
    """Trace events of a profile: one cycle is one microsecond.

    A unit is a process, and each of its engines, streams and arrays a thread with a slice per
    block. Arrows lead over barriers, from each slot that has been filled to its uses, and along
    tokens, from the turn of a slot to the box that waits for it. Counters give the
    cycles of a unit by state in each interval: their sums are those of the hardware's counters.

    Parameters
    ----------
    profile : mapping
        As of `sim.profile.schema`.
    """
    numbers = {unit["name"]: number for number, unit in enumerate(profile["units"], 1)}
    events = [*_names(profile, numbers), *_slices(profile, numbers), *_flows(profile, numbers)]
    events += _counters(profile, numbers)
    title = f"{profile['kernel']} on {profile['config']}"
    about = {"title": title, "cycles": profile["cycles"], "predicted": profile["predicted"]}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about})


def _threads(profile: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Number of each engine, stream or array within its unit."""
    parts = sorted({(block["unit"], block["part"]) for block in profile["blocks"]})
    counts: dict[str, int] = {}
    found = {}
    for unit, part in parts:
        counts[unit] = found[unit, part] = counts.get(unit, 0) + 1
    return found


def _names(profile: Mapping[str, Any], numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for unit in profile["units"]:
        if unit["used"]:
            number = numbers[unit["name"]]
            label = ", ".join([unit["name"], *unit["labels"]])
            yield _meta("process_name", number, 0, {"name": label})
            yield _meta("process_sort_index", number, 0, {"sort_index": number})
    for (unit, part), thread in _threads(profile).items():
        yield _meta("thread_name", numbers[unit], thread, {"name": part or "array"})


def _meta(name: str, process: int, thread: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": values}


def _slices(profile: Mapping[str, Any], numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    threads = _threads(profile)
    for block in profile["blocks"]:
        unit, part = block["unit"], block["part"]
        yield {
            "ph": "X",
            "name": block["name"] if block["number"] < 0 else f"{block['name']} {block['number']}",
            "cat": "block",
            "pid": numbers[unit],
            "tid": threads[unit, part],
            "ts": block["begin"],
            "dur": block["end"] - block["begin"],
            "args": {"waits_from": block["ready"]},
        }


def _flows(profile: Mapping[str, Any], numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Arrows between the end of a block and the begin of a later one."""
    threads = _threads(profile)
    blocks = profile["blocks"]
    arrows = [("barrier", *pair) for pair in _barriers(profile)]
    arrows += [
        ("token", blocks[token["source"]], blocks[token["sink"]]) for token in profile["tokens"]
    ]
    for number, (name, source, sink) in enumerate(arrows, 1):
        # Ends of sampled blocks may be later by the distance of two samples.
        sent = min(source["end"] - 1, sink["begin"])
        if sent < source["begin"]:
            continue
        for phase, end, cycle in (("s", source, sent), ("f", sink, sink["begin"])):
            yield {
                "ph": phase,
                "name": name,
                "cat": name,
                "id": number,
                "pid": numbers[end["unit"]],
                "tid": threads[end["unit"], end["part"]],
                "ts": cycle,
            } | ({"bp": "e"} if phase == "f" else {})


def _barriers(
    profile: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The turns that fill a slot, each with those of the same kernel that empty it."""
    begins = [entry["begin"] for entry in profile["entries"]]
    turns = [
        (block["part"][:1], (bisect.bisect(begins, block["begin"]), *_slot(block)), block)
        for block in profile["blocks"]
        if block["number"] >= 0
    ]
    filled = {turn: block for side, turn, block in turns if side == "W"}
    for side, turn, block in turns:
        if side == "R" and turn in filled:
            yield filled[turn], block


def _slot(block: Mapping[str, Any]) -> tuple[str, str, int]:
    return block["unit"], block["name"], block["number"]


def _counters(profile: Mapping[str, Any], numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    edges = profile["edges"]
    for unit in profile["units"]:
        if not unit["used"]:
            continue
        for interval, cycle in enumerate(edges[:-1]):
            yield {
                "ph": "C",
                "name": "cycles by state",
                "cat": "state",
                "pid": numbers[unit["name"]],
                "tid": 0,
                "ts": cycle,
                "args": {state: unit["states"][state][interval] for state in ACTIVITIES},
            }
