"""Kernels of several images and iterations: golden = emulator = RTL, cycles as predicted."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import DeviceError
from sim.native.conditions import ErrorAt, MemoryConditions
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sim.run.report import tell
from tests.sw.parts.hand_divisions import DIVISIONS, divided_by

KERNELS = {kernel.name: kernel for kernel in DIVISIONS}
#: Sizes on the RTL of `tiny`: ragged; latency-bound; a part of two launches.
SIZES = {
    "scores": {"M": 20, "K": 12, "N": 17},
    "batched": {"H": 3, "M": 13, "K": 20, "N": 9},
    "grouped": {"G": 2, "H": 3, "M": 5, "K": 9, "N": 12},
    "head_softmax": {"H": 3, "M": 7, "N": 19},
}
ENTRIES = {"scores": 2, "batched": 1, "grouped": 2, "head_softmax": 1}


def problem_of(monkeypatch, name, dims, config="tiny", dtype=tw.bf16):
    kernel = KERNELS[name]
    problem = Problem(kernel, named[config], dims, dtype, None)
    made = DIVISIONS[kernel](dtype, problem.outputs[0].format, **dims)
    divided_by(monkeypatch, made)
    return problem


def ran(problem, seed, **options):
    job = Job(problem, seed=seed, **options)
    compiled, fields = compile_job(job)
    return compiled, run(job, compiled, fields)


@pytest.mark.few
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_the_emulator_equals_golden_on_ragged_shapes(name, config, seed, monkeypatch, draws):
    rng = random.Random(seed)
    most = {"tiny": 20, "small": 60}[config]
    for number in range(4 - draws(2, 4), 4):
        dims = {
            each: rng.randint(1, 4 if each in "GH" else most)
            for each in KERNELS[name].signature.dims
        }
        dtype = tw.int8 if number == 3 and name in ("batched", "grouped") else tw.bf16
        problem = problem_of(monkeypatch, name, dims, config, dtype)
        compiled, outcome = ran(problem, seed + number, backend="emulator")
        assert outcome.report["verified"], (dims, outcome.problems)
        assert outcome.report["macs"] == compiled.macs <= compiled.macs_issued or not compiled.macs


def test_a_report_has_the_sums_and_unions_of_its_parts(monkeypatch):
    compiled, outcome = ran(
        problem_of(monkeypatch, "scores", SIZES["scores"]), 1, backend="emulator"
    )
    first, second = compiled.parts
    report = outcome.report
    assert (report["parts"], report["entries"]) == (2, 2)
    assert report["image_bytes"] == len(first.image) + len(second.image)
    assert any(f" 2 images of {report['image_bytes']:,} bytes" in line for line in tell(report))
    assert report["image_sha256"] == compiled.image_sha256
    for kind, count in report["units_used"].items():
        most = max(part.chip.units_used()[kind] for part in compiled.parts)
        assert most <= count <= sum(part.chip.units_used()[kind] for part in compiled.parts)
    cold = first.prediction(100).cycles + second.prediction(100).between
    assert compiled.predicted_cycles == cold + second.prediction(100).kernel
    assert compiled.ir("place").startswith("part 1:\n") and "\npart 2:\n" in compiled.ir("place")
    assert "part 2: slots" in compiled.report() and "intermediate T" in compiled.ir("divide")


def test_the_rtl_equals_golden_in_the_cycles_that_are_predicted(monkeypatch, seed, heavy):
    for name, dims in SIZES.items():
        problem = problem_of(monkeypatch, name, dims)
        _, cold = ran(problem, seed, backend="rtl")
        _, warm = ran(problem, seed, backend="rtl", warm=True)
        for outcome in (cold, warm):
            report = outcome.report
            assert report["verified"], (name, outcome.problems)
            assert report["predicted_cycles"] == pytest.approx(report["cycles"], rel=0.03), name
        assert warm.report["cycles"] < cold.report["cycles"]
        for field in ("dram_bytes_read", "dram_bytes_written"):
            assert warm.report[field] == cold.report[field], (name, field)
        several = ENTRIES[name] > 1
        assert cold.report["entries"] == ENTRIES[name]
        # Counters are cleared before each entry.
        states = {
            sum(unit[state] for state in ("busy", "wait_input", "wait_room", "idle", "launch"))
            for unit in cold.report["counters"].values()
        }
        assert len(states) == 1 and (max(states) < cold.report["cycles"]) == several
        assert any("counters are those of the last" in note for note in cold.notes) == several


def test_iterations_of_short_kernels_overlap_as_predicted(monkeypatch, seed, heavy):
    dims = {"H": 20, "M": 4, "K": 4, "N": 4}
    compiled, outcome = ran(problem_of(monkeypatch, "batched", dims), seed, backend="rtl")
    report = outcome.report
    assert report["verified"]
    assert report["predicted_cycles"] == pytest.approx(report["cycles"], rel=0.04)
    assert report["cycles"] < 0.5 * 20 * compiled.parts[0].prediction(100).kernel


def test_the_rtl_equals_golden_under_random_stalls(monkeypatch, seed, heavy):
    rng = random.Random(seed)
    for name in ("scores", "grouped"):
        conditions = MemoryConditions(latency=rng.randint(1, 60), jitter=20, stall=0.3, seed=seed)
        problem = problem_of(monkeypatch, name, SIZES[name])
        _, outcome = ran(problem, seed, backend="rtl", conditions=conditions)
        assert outcome.report["verified"], (name, outcome.problems)


@pytest.mark.slow
def test_cocotb_runs_the_same_lists(monkeypatch, seed, heavy):
    for name in ("scores", "grouped"):
        problem = problem_of(monkeypatch, name, SIZES[name])
        _, cold = ran(problem, seed, backend="cocotb")
        _, warm = ran(problem, seed, backend="cocotb", warm=True)
        assert cold.report["verified"] and warm.report["verified"], (cold.problems, warm.problems)
        assert 0 < warm.report["cycles"] < cold.report["cycles"]


def test_an_error_names_the_part_of_its_entry(monkeypatch, seed, heavy):
    problem = problem_of(monkeypatch, "scores", SIZES["scores"])
    compiled, outcome = ran(problem, seed, backend="emulator")
    whole = outcome.report["dram_bytes_read"] // (named["tiny"].width_bits // 8)
    last = sum(len(part.image) + 200 for part in compiled.parts) // (named["tiny"].width_bits // 8)
    conditions = MemoryConditions(error=ErrorAt("read", whole - last - 1, "slverr"))
    with pytest.raises(DeviceError, match=r"entry 1 of the launch list, part 2 of 2"):
        ran(problem, seed, backend="rtl", conditions=conditions)


def test_a_read_before_the_write_of_an_intermediate_is_seen(monkeypatch, seed):
    """Intermediates are random before the launch, so what is not written gives other outputs."""
    from sim.launch_memory import LaunchMemory

    problem = problem_of(monkeypatch, "scores", SIZES["scores"])
    compiled = problem.compile()
    inputs = {each.name: np.ones(each.shape, each.format.dtype) for each in problem.inputs}
    memory = LaunchMemory.of_kernel(compiled, seed=seed)
    (spec,) = compiled.intermediates
    before = memory.bytes_before(inputs)
    assert len(np.unique(memory.read(before, spec.name))) > spec.shape[0]
    other = LaunchMemory.of_kernel(compiled, seed=seed + 1).bytes_before(inputs)
    assert memory.read(before, "T").tobytes() != memory.read(other, "T").tobytes()
