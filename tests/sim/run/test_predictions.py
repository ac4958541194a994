"""Predicted cycles are those of the RTL: shapes, latencies of memory, cold and warm launches."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, int8
from sim.native.conditions import MemoryConditions
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.kernels.transposed.matmul_tt import matmul_tt

SHAPES = {
    (8, 8, 8): bf16,
    (40, 24, 48): bf16,
    (33, 17, 45): int8,
    (64, 64, 8): bf16,  # bound by stores
    (1, 64, 64): bf16,  # a row times a matrix
}


def launched(shape, fmt, latency, *, warm=False, kernel=matmul):
    """Compiled kernel and report of a launch on the RTL."""
    m, n, k = shape
    problem = Problem(kernel, named["tiny"], {"M": m, "N": n, "K": k}, fmt, None)
    conditions = MemoryConditions(latency=latency)
    job = Job(problem, backend="rtl", seed=1, conditions=conditions, warm=warm)
    compiled, fields = compile_job(job)
    return compiled, run(job, compiled, fields).report


@pytest.mark.few(1)
@pytest.mark.parametrize("latency", [1, 100, 400])
def test_cycles_are_those_of_the_rtl(latency, heavy):
    for shape, fmt in SHAPES.items():
        compiled, report = launched(shape, fmt, latency)
        found = compiled.parts[0].prediction(latency)
        assert report["verified"] and report["predicted_cycles"] == found.cycles
        assert found.cycles == pytest.approx(report["cycles"], rel=0.02), shape
        first = found.before + found.to_multiply
        assert first == pytest.approx(report["launch_to_first_mac"], abs=16), shape
        before = {unit["launch"] for unit in report["counters"].values()}
        assert before == {found.before}, shape


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [matmul_nt, matmul_tn, matmul_tt], ids=lambda each: each.name)
def test_cycles_with_transposed_operands_are_those_of_the_rtl(kernel, heavy, draws):
    for shape, fmt in list(SHAPES.items())[-draws(3, 5) :]:
        compiled, report = launched(shape, fmt, 100, kernel=kernel)
        assert report["verified"]
        assert compiled.predicted_cycles == pytest.approx(report["cycles"], rel=0.02), shape


def test_a_warm_launch_is_predicted_as_such(heavy):
    for shape in list(SHAPES)[:2]:
        compiled, report = launched(shape, SHAPES[shape], 100, warm=True)
        found = compiled.parts[0].prediction(100)
        assert report["predicted_cycles"] == found.warm_cycles < found.cycles
        assert found.warm_cycles == pytest.approx(report["cycles"], rel=0.02), shape
        assert {unit["launch"] for unit in report["counters"].values()} == {found.between}


def test_busy_units_are_as_busy_as_predicted(heavy):
    compiled, report = launched((40, 24, 48), bf16, 100)
    found = compiled.parts[0].prediction(100)
    for name, unit in report["counters"].items():
        if unit["kind"] == "pcu" and name in found.busy:
            assert found.busy[name] * found.kernel == pytest.approx(unit["busy"])
        if unit["kind"] == "agcu":
            # Beats of the direction that has more.
            beats = unit["bytes"] // (named["tiny"].width_bits // 8)
            moves = round(found.busy[name] * found.kernel)
            assert beats / 2 <= moves <= min(beats, unit["busy"])
