"""see-c: what recording costs, and that its counters are those of the chip."""

import collections
import contextlib
import dataclasses
import itertools
import json
import re
import shutil
import statistics

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.backends.choose import open_backend
from sim.backends.interface import LaunchOrder
from sim.launch_memory import LaunchMemory
from sim.native import chip_model
from sim.operands import random_inputs
from sim.profile.collect import sample_distance
from sim.profile.trace_events import trace_of
from sim.run.driver import compile_job
from sim.run.job import Job, Problem
from sw.kernels.matmul import matmul
from tests.profiled_run import profiled
from tests.trace_format import faults


def _seconds(job, compiled, memory, place, every):
    """Seconds of a launch in a model of its own settings, from its answer."""
    setup = dataclasses.replace(job.setup(), sample_every=every)
    with open_backend(job.backend, setup) as backend:
        order = LaunchOrder(place.list_address, place.entries, max_cycles=1 << 30)
        answer = backend.launch(bytearray(memory), order)
    assert answer.status == "done" and bool(answer.samples) == bool(every)
    return answer.seconds


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-c", goal="recording costs ≤ 10 % of cycles/s, median of 7 pairs")
def test_recording_costs_little(heavy, figure):
    job = Job(Problem(matmul, named["tiny"], {"M": 96, "N": 64, "K": 96}, bf16))
    compiled, _ = compile_job(job)
    place = LaunchMemory.of_kernel(compiled, seed=1, launches=1)
    memory = place.bytes_before(random_inputs(job.problem.inputs, 1))
    every = sample_distance(job, compiled)
    pairs = []
    for _ in range(9):
        without = _seconds(job, compiled, memory, place, 0)
        pairs.append(without / _seconds(job, compiled, memory, place, every))
    share = statistics.median(pairs)
    figure(f"{share:.3f} of the speed, a sample in {every} cycles")
    assert share >= 0.9


#: Pairs of models, and launches of each model of a pair.
_PAIRS, _LAUNCHES = 9, 5


def _without_recording(text):
    """The harness with nothing of what takes samples in a cycle."""
    for pattern in (
        r"^ *if \(every\) watch\(\);\n",
        r"^    // A row of the samples.*?(?=^    void settle)",
    ):
        text, count = re.subn(pattern, "", text, flags=re.MULTILINE | re.DOTALL)
        assert count == 1, pattern
    assert "take_sample" not in text and "watch()" not in text
    return text


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-c", goal="off, ≥ 0.99 of a build without recording, median of ≥ 7 pairs")
def test_recording_that_is_off_costs_nothing(heavy, figure, tmp_path, monkeypatch):
    job = Job(Problem(matmul, named["tiny"], {"M": 96, "N": 64, "K": 64}, bf16))
    compiled, _ = compile_job(job)
    place = LaunchMemory.of_kernel(compiled, seed=1, launches=1)
    memory = place.bytes_before(random_inputs(job.problem.inputs, 1))
    whole = chip_model._HARNESS
    bare = tmp_path / whole.name
    bare.write_text(_without_recording(whole.read_text(encoding="utf-8")), encoding="utf-8")
    load, copies = chip_model.load, itertools.count()

    def load_copy(path):
        """Load a library from a file of its own: its place in memory changes its speed, too."""
        return load(shutil.copyfile(path, tmp_path / f"{next(copies)}.so"))

    monkeypatch.setattr(chip_model, "load", load_copy)
    order = LaunchOrder(place.list_address, place.entries, max_cycles=1 << 30)
    pairs = []
    for _ in range(_PAIRS):
        with contextlib.ExitStack() as opened:
            seconds = {}
            for harness in (whole, bare):
                monkeypatch.setattr(chip_model, "_HARNESS", harness)
                seconds[opened.enter_context(open_backend(job.backend, job.setup()))] = []
            # The least of several launches: other programs only make one slower.
            for _ in range(_LAUNCHES):
                for backend, times in seconds.items():
                    times.append(backend.launch(bytearray(memory), order).seconds)
        with_it, without = map(min, seconds.values())
        pairs.append(without / with_it)
    share = statistics.median(pairs)
    figure(f"{share:.3f} of the speed of a build without recording, {len(pairs)} pairs")
    assert share >= 0.99


@pytest.mark.timeout(600)
@pytest.mark.must("see-c", goal="the trace is valid; busy cycles summed from it equal the counters")
def test_counters_of_the_trace_equal_those_of_the_chip(heavy, figure):
    profile = profiled(matmul, {"M": 40, "N": 24, "K": 32})
    names = {number: unit["name"] for number, unit in enumerate(profile["units"], 1)}
    sums = collections.Counter()
    text = trace_of(profile)
    assert faults(text) == []
    for event in json.loads(text)["traceEvents"]:
        if event["ph"] == "C":
            sums[names[event["pid"]]] += event["args"]["busy"]
    counters = profile["report"]["counters"]
    assert sums == {name: counters[name]["busy"] for name in sums}
    figure(f"{len(sums)} units equal")
