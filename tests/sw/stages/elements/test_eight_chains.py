"""Element math on more than four chains a line, whose results a buffer collects."""

import random

import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16, fp32, int8
from sw.kernels.add import add
from sw.kernels.gelu import gelu
from sw.kernels.silu import silu
from sw.stages.elements import element_pipeline
from tests.sw.search.all_opened import AllOpened
from tests.sw.stages.region_runs import compiled_of, only_grids, require_predicted, summary, verify

#: 12 PCUs with one AGCU, and 32 with two: more than four chains for each.
ONE = ChipConfig(rows=6, columns=4, agcu=AgcuConfig(count=1))
TWO = ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=2))


@tw.kernel("X[M, N]: bf16 -> Y[M, N]: fp32, Z[M, N]: bf16")
def two_results(X, Y, Z):
    """One twice as long as the source."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], x.to(tw.fp32) * 0.5)
        tw.store_tile(Z[i, :], -x)


@tw.kernel("X[M, N]: fp32 -> Y[M, N]: bf16")
def narrower(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.maximum(tw.load_tile(X[i, :]), 0.0).to(tw.bf16))


@pytest.fixture
def only_many(monkeypatch):
    """Plans of at most four chains a line do not fit."""
    only_grids(monkeypatch, element_pipeline, lambda each: each.copies > 4)


SIZES = random.Random(88)
CASES = [
    (kernel, config, (SIZES.randint(1, 200), SIZES.randint(1, 300)))
    for kernel in (add, silu, two_results, narrower)
    for config in (ONE, TWO)
    for _ in range(3)
]


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("kernel", "config", "sizes"), CASES, ids=lambda each: getattr(each, "name", "-")
)
def test_results_equal_golden(only_many, kernel, config, sizes):
    verify(kernel, config, sizes, {narrower: fp32}.get(kernel, bf16))


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "dtype"), [(add, int8), (silu, bf16), (add, fp32)])
def test_equal_on_the_rtl_in_the_predicted_cycles(only_many, kernel, dtype):
    require_predicted(kernel, "small", (70, 90), dtype, seed=3)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("copies", [8, 5, 6, 7])
def test_packets_longer_than_the_fifo_of_a_pcu_take_the_predicted_cycles(copies, monkeypatch):
    """While one PCU takes its vectors, no packet reaches the others."""
    kept = 1, copies
    only_grids(monkeypatch, element_pipeline, lambda each: (each.lines, each.copies) == kept)
    require_predicted(silu, "small", (100, 300), fp32, seed=3)


@pytest.mark.parametrize(
    ("kernel", "config", "chains"), [(silu, ONE, 6), (silu, TWO, 16), (silu, named["large"], 9)]
)
def test_all_pcus_work(kernel, config, chains):
    """Four chains a line would leave PCUs idle: a third, half, and two of 18."""
    assert f"{chains} chains of 2" in summary(kernel, config, (1024, 512))


def test_chains_are_no_more_than_the_bus_feeds():
    """A load stream of each tensor shares one AGCU: half a vector a cycle, that of four PCUs."""
    assert "5 chains of 1" in summary(add, ONE, (777, 1500))


def test_long_packets_are_for_few_chains():
    """Vectors that a FIFO does not hold keep the stream from the next chain."""
    assert "of 2 PCUs" in summary(silu, ONE, (200, 300), fp32)


@pytest.mark.few(6)
@pytest.mark.parametrize("kernel", [add, gelu, two_results])
@pytest.mark.parametrize("config", [*named.values(), ONE, TWO], ids=[*named, "one", "two"])
def test_no_bound_is_above_the_cycles(monkeypatch, kernel, config):
    found = summary(kernel, config, (130, 257))
    monkeypatch.setattr(element_pipeline, "BestFirst", AllOpened)
    assert compiled_of(kernel, config, (130, 257)).parts[0].pipeline.summary == found
