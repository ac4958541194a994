"""Estimates of copies and of statistics of columns, by which divisions are compared."""

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.run.job import Problem
from sw.language import Schedule
from sw.parts.part import Division
from sw.search.held_up import compared


@tw.kernel("X[M, N] -> S[1, N]: fp32")
def column_sums(X, S):
    tw.store_tile(S, tw.col_sum(tw.load_tile(X)))


@tw.kernel("X[M, N] -> Y[M, N]")
def normalised_columns(X, Y):
    x = tw.load_tile(X)
    d = x - tw.col_sum(x) * 0.01
    tw.store_tile(Y, d * tw.rsqrt(tw.col_sum(d * d) + 1e-3))


@tw.kernel("X[M, N] -> Y[M, N]")
def copied(X, Y):
    tw.store_tile(Y, tw.load_tile(X))


@tw.kernel("X[M, N] -> Y[N, M]")
def turned(X, Y):
    tw.store_tile(Y, tw.load_tile(X).T)


@pytest.mark.few(16)
@pytest.mark.parametrize("sizes", [(1000, 200), (300, 700)], ids=str)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("dtype", [bf16, fp32], ids=str)
@pytest.mark.parametrize(
    "kernel", [column_sums, normalised_columns, copied, turned], ids=lambda each: each.name
)
def test_an_estimate_is_near_the_prediction(kernel, dtype, chip, sizes):
    config = named[chip]
    compiled = Problem(kernel, config, dict(zip("MN", sizes, strict=True)), dtype).compile()
    (part,) = compiled.parts
    cycles, _ = compared(Division((part.part,)), Division(()), config, Schedule())
    assert 0.65 <= cycles / compiled.predicted_cycles <= 1.35
