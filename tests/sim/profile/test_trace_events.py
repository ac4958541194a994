"""Trace events of a profile: their form, their arrows, and the sums of their counters."""

import collections
import json

import pytest

from sim.profile.trace_events import trace_of
from sw.kernels.matmul import matmul
from tests.profiled_run import busy_cycles, profiled

#: Fields that the trace event format demands, by phase.
DEMANDED = {
    "M": {"name", "pid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "C": {"name", "pid", "ts", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}


@pytest.fixture(scope="module")
def profile():
    return profiled(matmul, {"M": 16, "N": 16, "K": 16}, backend="emulator")


@pytest.fixture(scope="module")
def events(profile):
    return json.loads(trace_of(profile))["traceEvents"]


def test_events_have_the_fields_of_the_format(events):
    assert {event["ph"] for event in events} == set(DEMANDED)
    for event in events:
        assert DEMANDED[event["ph"]] <= set(event)
        assert event.get("ts", 0) >= 0 and event.get("dur", 1) > 0


def test_arrows_lead_from_slices_to_later_slices(events):
    ends = collections.defaultdict(dict)
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
        elif event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert ends
    for pair in ends.values():
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        for event in pair.values():
            inside = slices[event["pid"], event["tid"]]
            assert any(begin <= event["ts"] < end for begin, end in inside)


def test_counters_sum_to_the_busy_cycles_of_each_unit(profile, events):
    names = {number: unit["name"] for number, unit in enumerate(profile["units"], 1)}
    sums, wholes = collections.Counter(), collections.Counter()
    for event in events:
        if event["ph"] == "C":
            sums[names[event["pid"]]] += event["args"]["busy"]
            wholes[names[event["pid"]]] += sum(event["args"].values())
    assert sums == busy_cycles(profile)
    assert set(wholes.values()) == {profile["cycles"] - profile["launch_cycles"]}
