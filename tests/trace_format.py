"""Check of a file against the published Trace Event Format: what is wrong in it, in sentences."""

import collections
import json
import numbers

__all__ = ["faults"]

_TOP = {
    "traceEvents",
    "displayTimeUnit",
    "otherData",
    "systemTraceEvents",
    "stackFrames",
    "samples",
}
#: Fields that events of a phase must have, and those that they may have.
_PHASES = {
    "X": ({"name", "ph", "ts", "pid", "tid", "dur"}, {"cat", "args", "tts", "tdur", "cname", "id"}),
    "C": ({"name", "ph", "ts", "pid", "args"}, {"cat", "tid", "id", "cname"}),
    "M": ({"name", "ph", "pid", "args"}, {"tid", "ts", "cat"}),
    "s": ({"name", "ph", "ts", "pid", "tid", "id", "cat"}, {"args", "cname"}),
    "f": ({"name", "ph", "ts", "pid", "tid", "id", "cat"}, {"args", "cname", "bp"}),
}
_METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def faults(text):
    """Every breach of the format in a file of the object form."""
    top = json.loads(text, parse_constant=_refuse_constant)
    found = [f"field {name} of the file" for name in sorted(set(top) - _TOP)]
    if top.get("displayTimeUnit", "ms") not in ("ms", "ns"):
        found.append(f"displayTimeUnit {top['displayTimeUnit']}")
    events = top["traceEvents"]
    for number, event in enumerate(events):
        found += [f"event {number}: {each}" for each in _event_faults(event)]
    return found or [*_slice_faults(events), *_flow_faults(events)]


def _event_faults(event):
    """Breaches of one event."""
    if event.get("ph") not in _PHASES:
        return [f"phase {event.get('ph')}"]
    needed, others = _PHASES[event["ph"]]
    found = [f"no {name}" for name in sorted(needed - set(event))]
    found += [f"field {name}" for name in sorted(set(event) - needed - others)]
    for name in ("pid", "tid"):
        if not isinstance(event.get(name, 0), int):
            found.append(f"{name} must be an integer")
    for name in ("ts", "dur", "tts", "tdur"):
        value = event.get(name, 0)
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or value < 0:
            found.append(f"{name} must be a number of microseconds")
    for name in ("name", "cat"):
        if not isinstance(event.get(name, ""), str):
            found.append(f"{name} must be a text")
    if event.get("bp", "e") != "e":
        found.append("bp must be e")
    args = event.get("args", {})
    if not isinstance(args, dict):
        return [*found, "args must be an object"]
    if event["ph"] == "C" and not all(isinstance(each, numbers.Real) for each in args.values()):
        found.append("series of a counter must be numbers")
    if event["ph"] == "M":
        name, kind = _METADATA.get(event.get("name"), (None, None))
        if name is None or set(args) != {name} or not isinstance(args[name], kind):
            found.append(f"metadata {event.get('name')}")
    return found


def _threads(events):
    """Slices by process and thread, in the order in which they begin, outer ones first."""
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    return {thread: sorted(each) for thread, each in slices.items()}


def _slice_faults(events):
    """Slices of a thread that overlap without one being within the other."""
    found = []
    for thread, slices in _threads(events).items():
        ends = []
        for begin, negative in slices:
            end = begin - negative
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and end > ends[-1]:
                found.append(f"slices of thread {thread} overlap at {begin}")
            ends.append(end)
    return found


def _flow_faults(events):
    """Flows without one start and one later end, each within a slice."""
    found = []
    flows = collections.defaultdict(list)
    threads = _threads(events)
    for event in events:
        if event["ph"] in "sf":
            flows[event["cat"], event["name"], event["id"]].append(event)
            inside = threads.get((event["pid"], event["tid"]), ())
            bound = event["ph"] == "s" or event.get("bp") == "e"
            if bound and not any(at <= event["ts"] <= at - length for at, length in inside):
                found.append(f"flow {event['id']} has no slice at {event['ts']}")
    for (*_, number), ends in flows.items():
        if [each["ph"] for each in ends] != ["s", "f"]:
            found.append(f"flow {number} must have a start and an end")
        elif ends[0]["ts"] > ends[1]["ts"]:
            found.append(f"flow {number} ends before it starts")
    return found
