"""Trace events of a profile: their form, their arrows, and the sums of their counters."""

import collections
import json

import pytest

from sim.profile.trace_events import trace_of
from sw.kernels.matmul import matmul
from tests.attention_in_parts import attention_in_parts
from tests.profiled_run import busy_cycles, profiled
from tests.trace_format import faults


@pytest.fixture(scope="module")
def profile():
    return profiled(matmul, {"M": 16, "N": 16, "K": 16}, backend="emulator")


@pytest.fixture(scope="module")
def events(profile):
    return json.loads(trace_of(profile))["traceEvents"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "dims"),
    [
        (matmul, {"M": 16, "N": 16, "K": 16}),
        (attention_in_parts, {"H": 1, "M": 20, "S": 24, "D": 16}),
    ],
    ids=["product", "four parts"],
)
def test_a_trace_is_as_its_format_demands(kernel, dims):
    found = profiled(kernel, dims, backend="emulator")
    text = trace_of(found)
    assert faults(text) == []
    events = json.loads(text)["traceEvents"]
    phases = collections.Counter(event["ph"] for event in events)
    assert set(phases) == set("MXCsf") and phases["s"] == phases["f"]
    # Each turn that empties a slot follows the one that filled it.
    emptied = [block for block in found["blocks"] if block["part"].startswith("R")]
    flows = collections.Counter(event["name"] for event in events if event["ph"] == "s")
    assert flows["barrier"] == len(emptied) and flows["token"] == len(found["tokens"])


def _first(phase, **changes):
    """An edit of the first event of a phase; None removes a field."""

    def edit(top):
        event = next(each for each in top["traceEvents"] if each["ph"] == phase)
        event.update(changes)
        for name in [name for name, value in changes.items() if value is None]:
            del event[name]

    return edit


def _into_the_next(top):
    """Let a slice end within the next one of its thread."""
    slices = [each for each in top["traceEvents"] if each["ph"] == "X"]
    for first in slices:
        for second in slices:
            beside = (first["pid"], first["tid"]) == (second["pid"], second["tid"])
            if beside and second["ts"] > first["ts"] and second["dur"] > 1:
                first["dur"] = second["ts"] + 1 - first["ts"]
                return


def _without_ends(top):
    top["traceEvents"] = [each for each in top["traceEvents"] if each["ph"] != "f"]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_first("X", dur=None), "no dur"),
        (_first("X", ts=-1), "ts must be a number"),
        (_first("X", pid="pcu"), "pid must be an integer"),
        (_into_the_next, "overlap"),
        (_first("X", ph="Q"), "phase Q"),
        (_first("C", args={"busy": "all"}), "series of a counter"),
        (_first("M", args={"title": "x"}), "metadata"),
        (_first("s", ts=10**6), "no slice at 1000000"),
        (_first("f", ts=0), "no slice at 0"),
        (_first("s", colour="red"), "field colour"),
        (_without_ends, "must have a start and an end"),
        (lambda top: top.update(displayTimeUnit="s"), "displayTimeUnit s"),
        (lambda top: top.update(title="x"), "field title"),
    ],
)
def test_a_breach_of_the_format_is_found(profile, edit, message):
    top = json.loads(trace_of(profile))
    edit(top)
    assert message in "; ".join(faults(json.dumps(top)))


def test_arrows_lead_from_slots_to_those_that_wait_for_them(profile, events):
    names = {number: unit["name"] for number, unit in enumerate(profile["units"], 1)}
    ends = collections.defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            ends[event["name"], event["id"]][event["ph"]] = names[event["pid"]]
    kinds = collections.defaultdict(set)
    for (name, _), pair in ends.items():
        kinds[name].add((pair["s"][:3], pair["f"][:3]))
    assert kinds == {"barrier": {("pmu", "pmu")}, "token": {("pmu", "agc")}}


def test_a_token_leaves_when_its_slot_has_been_left(profile):
    blocks = profile["blocks"]
    assert profile["tokens"]
    for token in profile["tokens"]:
        source, sink = blocks[token["source"]], blocks[token["sink"]]
        assert source["end"] <= sink["begin"]
        # A store waits for a slot that is filled, a load for one that has been read.
        assert source["part"][0] == ("W" if sink["part"].startswith("store") else "R")


def test_counters_sum_to_the_busy_cycles_of_each_unit(profile, events):
    names = {number: unit["name"] for number, unit in enumerate(profile["units"], 1)}
    sums, wholes = collections.Counter(), collections.Counter()
    for event in events:
        if event["ph"] == "C":
            sums[names[event["pid"]]] += event["args"]["busy"]
            wholes[names[event["pid"]]] += sum(event["args"].values())
    assert sums == busy_cycles(profile)
    assert set(wholes.values()) == {profile["cycles"] - profile["launch_cycles"]}
