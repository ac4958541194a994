"""Statistics of int8 tiles, in parts that take them as bf16: equal golden on every chip."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.job import Problem
from sw.ir.nodes import Reduce
from sw.ir.rewrite import walk
from sw.parts.forms.wide_statistics import with_wide_statistics


@tw.kernel("X[M, N]: int8 -> S[M, 1]: int32")
def sums(X, S):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(S[i, :], tw.row_sum(tw.load_tile(X[i, :])))


@tw.kernel("X[M, N]: int8 -> S[M, 1]: int8")
def greatest(X, S):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(S[i, :], tw.row_max(tw.load_tile(X[i, :])))


@tw.kernel("X[M, N]: int8 -> S[1, N]: int32")
def column_sums(X, S):
    tw.store_tile(S, tw.col_sum(tw.load_tile(X)))


@tw.kernel("X[M, N]: int8 -> P[M, 1]: int32")
def places(X, P):
    """Column of the first of the greatest elements of each row."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(P[i, :], tw.row_min(tw.where(x == tw.row_max(x), tw.col_index(x), x.cols)))


@tw.kernel("X[M, K]: int8, W[K, N]: int8 -> Y[M, N]: int32")
def corrected(X, W, Y):
    """A product of numbers that are too large by 8 in X and by 4 in W, but for a constant."""
    for i in tw.metapipe(X.shape[0]):
        x, w = tw.load_tile(X[i, :]), tw.load_tile(W)
        tw.store_tile(Y[i, :], x @ w - tw.row_sum(x) * 4 - tw.col_sum(w) * 8)


@tw.kernel("X[M, K]: int8, W[M, K]: int8 -> Y[M, 1]: int32")
def distances(X, W, Y):
    """Sums of magnitudes and of products, less a whole multiple of a maximum."""
    for i in tw.metapipe(X.shape[0]):
        x, w = tw.load_tile(X[i, :]), tw.load_tile(W[i, :])
        tw.store_tile(Y[i, :], tw.row_sum(abs(x - w) + x * w) - tw.row_max(-x) * 3)


@tw.kernel("X[M, K]: int8, W[M, K]: int8 -> Y[1, K]: int32")
def counts(X, W, Y):
    tw.store_tile(Y, tw.col_sum(tw.where(tw.load_tile(X) > tw.load_tile(W), 1, 0)))


PAIRS = [distances, counts]
KERNELS = [sums, greatest, column_sums, places, corrected, *PAIRS]


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_statistics_of_int8_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    m, k, n = (int(each) for each in draw.integers(1, 70, 3))
    shapes = [(m, k), (k, n)] if kernel is corrected else [(m, n)]
    shapes = [(m, k)] * 2 if kernel in PAIRS else shapes
    arrays = [draw.integers(-128, 128, each).astype(np.int8) for each in shapes]
    arrays[0][0] = -128
    found = kernel.run(*arrays, config=chip, backend="emulator")
    assert found.verified, found.problems


def test_sums_that_fp32_would_round_stay():
    """2^17 numbers of int8 may sum to 2^24, and no more are exact."""
    for columns, changed in ((1 << 17, True), ((1 << 17) + 1, False)):
        program = sums.trace(M=4, N=columns)
        assert (with_wide_statistics(program) != program) == changed
        program = greatest.trace(M=4, N=columns)
        assert with_wide_statistics(program) != program


def test_sums_of_products_that_fp32_would_round_stay():
    """A product of two numbers of int8 is at most 2^14."""

    @tw.kernel("X[M, N]: int8, W[M, N]: int8 -> S[M, 1]: int32")
    def dots(X, W, S):
        for i in tw.metapipe(X.shape[0]):
            tw.store_tile(S[i, :], tw.row_sum(tw.load_tile(X[i, :]) * tw.load_tile(W[i, :])))

    def sums_floats(columns):
        nodes = walk(with_wide_statistics(dots.trace(M=4, N=columns)).nodes)
        return [each.result.type.format == tw.fp32 for each in nodes if isinstance(each, Reduce)]

    assert sums_floats(1024) == [True] and sums_floats(1025) == [False]


def test_a_cast_passes_through_memory_as_bf16():
    compiled = Problem(sums, named["small"], {"M": 40, "N": 64}, None).compile()
    assert [each.format for each in compiled.intermediates] == [tw.bf16]
