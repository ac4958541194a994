"""pipe-g: predicted cycles are those of the RTL, cold and warm, at any latency of the memory."""

import functools
from importlib import import_module

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, int8
from sim.cli.settings import default_sizes
from sim.native.conditions import MemoryConditions
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.kernels import modules

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

KERNELS = {name: getattr(import_module(module), name) for name, module in modules().items()}
#: Products of the lines on utilization and few rows, and 2¹⁹ elements: kernel, sizes, chip, format.
CASES = [
    *((name, {}, "small", bf16) for name in KERNELS),
    *(
        ("matmul", dict(zip("MNK", shape, strict=True)), "small", fmt)
        for shape in ((512, 512, 512), (128, 128, 1024), (64, 64, 1024), (251, 257, 263))
        for fmt in (bf16, int8)
    ),
    *(
        ("matmul", {"M": rows, "N": 1024, "K": 1024}, "small", fmt)
        for rows in (1, 2, 4, 8, 16)
        for fmt in (bf16, int8)
    ),
    *(("matmul", dict.fromkeys("MNK", side), "large", bf16) for side in (256, 512)),
    *((name, {"M": 1024, "N": 512}, "small", bf16) for name in ("softmax", "gelu", "silu", "add")),
]
#: Share of the cases whose prediction is close, and how close that and every other one is.
SHARE, CLOSE, MOST = 0.95, 0.05, 0.12


@functools.cache
def compiled_case(number):
    name, sizes, chip, fmt = CASES[number]
    dims = default_sizes(KERNELS[name]) | sizes
    problem = Problem(KERNELS[name], named[chip], dims, fmt, None)
    return problem, *compile_job(Job(problem))


@pytest.mark.must("pipe-g", goal="cycles predicted: 95 % within 5 %, all within 12 %")
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("latency", [1, 100, 400])
def test_cycles_are_predicted(latency, warm, heavy, figure):
    errors = {}
    for number, (name, sizes, chip, fmt) in enumerate(CASES):
        problem, compiled, fields = compiled_case(number)
        job = Job(problem, conditions=MemoryConditions(latency=latency), warm=warm)
        report = run(job, compiled, fields).report
        text = f"{name} {' × '.join(map(str, sizes.values()))} {fmt.name} on {chip}"
        assert report["verified"], text
        found = compiled.prediction(latency)
        predicted = found.warm_cycles if warm else found.cycles
        errors[text] = abs(predicted / report["cycles"] - 1)
    far = {text: error for text, error in errors.items() if error > CLOSE}
    worst = max(errors, key=lambda text: errors[text])
    figure(f"{len(far)} of {len(errors)} beyond 5 %; worst {errors[worst]:.3f}: {worst}")
    assert errors[worst] <= MOST
    assert len(far) <= (1 - SHARE) * len(errors), far
