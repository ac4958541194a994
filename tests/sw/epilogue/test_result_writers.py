"""Products on chips with few AGCUs: two result writers for each, one for each store stream."""

import random

import pytest

from hw.arch.config import AgcuConfig, ChipConfig
from hw.numeric.formats import bf16, int8
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.compiler import compile_kernel
from sw.epilogue import collector
from sw.fabric.merges import MOST_COLLECTED
from sw.kernels.linear import linear
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt

#: 16, 32, 32 and 72 PCUs.
WIDE = ChipConfig(rows=4, columns=8, agcu=AgcuConfig(count=1))
ONE = ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=1))
TWO = ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=2))
MESH = ChipConfig(rows=12, columns=12, agcu=AgcuConfig(count=2))
LARGEST = ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=4))
#: One store stream an AGCU.
ONE_TRACK = ChipConfig(rows=8, columns=8, tracks=1, agcu=AgcuConfig(count=2))
#: Shapes that take two writers an AGCU: M, N, K.
SHAPES = [
    (matmul, WIDE, (256, 34, 50), bf16),
    (matmul, WIDE, (300, 48, 20), int8),
    (linear, WIDE, (25, 205, 12), bf16),
    (linear, TWO, (41, 257, 10), bf16),
    (matmul_nt, TWO, (300, 111, 45), bf16),
    (matmul, ONE, (188, 87, 60), bf16),
]


def verified(kernel, config, shape, fmt, seed, backend="emulator"):
    """Parts of a product and the report of a run."""
    dims = dict(zip("MNK", shape, strict=True))
    job = Job(Problem(kernel, config, dims, fmt), backend=backend, seed=seed)
    compiled, *rest = compile_job(job)
    outcome = run(job, compiled, *rest)
    assert outcome.report["verified"], outcome.problems
    return compiled.parts, outcome.report


@pytest.mark.few(2)
@pytest.mark.parametrize(("kernel", "config", "shape", "fmt"), SHAPES)
def test_two_writers_an_agcu_equal_golden(kernel, config, shape, fmt, seed):
    parts, _ = verified(kernel, config, shape, fmt, seed)
    part = next(each for each in parts if each.fit)
    writers = [(each.agcu, each.stream) for each in part.fit.collectors]
    assert len(set(writers)) == len(writers) > config.agcu.count
    assert part.plan.row_par * part.plan.col_par > MOST_COLLECTED * config.agcu.count


@pytest.mark.few(1)
@pytest.mark.parametrize("config", [WIDE, TWO], ids=["one AGCU", "two"])
def test_random_products_on_few_agcus(config, seed, draws):
    draw = random.Random(seed)
    for _ in range(draws(3, 12)):
        shape = tuple(round(2 ** draw.uniform(0, 8.5)) for _ in "MNK")
        kernel = draw.choice([matmul, matmul_nt, linear])
        print(kernel.name, shape)
        verified(kernel, config, shape, bf16, seed)


@pytest.mark.slow
def test_an_agcu_of_one_track_has_one_writer(seed):
    parts, _ = verified(matmul, ONE_TRACK, (300, 111, 45), bf16, seed)
    assert [each.stream for each in parts[0].fit.collectors] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "shape", "one", "two"),
    [
        (TWO, (512, 512, 512), 67_642, 36_073),
        (ONE, (1024, 512, 512), 264_303, 140_688),
        (MESH, (1024, 512, 512), 133_180, 71_442),
        (LARGEST, (1024, 1024, 1024), 263_720, 134_660),
    ],
    ids=["8 x 8, 2", "8 x 8, 1", "12 x 12, 2", "16 x 16, 4"],
)
def test_two_writers_an_agcu_serve_more_pcus(config, shape, one, two, monkeypatch):
    """The table of docs/compiler.md."""

    def cycles():
        dims = dict(zip("MNK", shape, strict=True))
        return compile_kernel(matmul, config, dims=dims, dtype=bf16).predicted_cycles

    assert cycles() == two
    monkeypatch.setattr(collector, "AGCU_STREAMS", 1)
    assert cycles() == one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "shape", "fmt"), [(each, shape, fmt) for each, chip, shape, fmt in SHAPES[:3]]
)
def test_two_writers_an_agcu_on_the_rtl(kernel, shape, fmt, seed, heavy):
    _, report = verified(kernel, WIDE, shape, fmt, seed, backend="rtl")
    assert report["predicted_cycles"] == pytest.approx(report["cycles"], rel=0.05)
