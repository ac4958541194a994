"""Statistics of columns on chips: one result per column, and tiles that are scaled by them."""

import dataclasses
import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sw.compiler import compile_kernel
from tests.sw.stages.region_runs import side, verify


@tw.kernel("X[M, N] -> Y[1, N]")
def column_sums(X, Y):
    tw.store_tile(Y[:, :], tw.col_sum(tw.load_tile(X[:, :])))


@tw.kernel("X[M, N], g[N] -> Y[N]")
def limited_maxima(X, g, Y):
    """A result of one axis, and a vector along the columns beside the statistic."""
    for j in tw.metapipe(X.shape[1]):
        most = tw.col_max(abs(tw.load_tile(X[:, j])))
        tw.store_tile(Y[j], tw.minimum(most, tw.load_tile(g[j])))


@tw.kernel("X[M, N] -> Y[M, N]")
def column_softmax(X, Y):
    for j in tw.metapipe(X.shape[1]):
        x = tw.load_tile(X[:, j])
        e = tw.exp(x - tw.col_max(x))
        tw.store_tile(Y[:, j], e / tw.col_sum(e))


@tw.kernel("X[M, N], R[M, N], g[N] -> Y[M, N]")
def scaled_columns(X, R, g, Y):
    """Programs behind the one with the statistic, beside tiles and a vector."""
    x = tw.load_tile(X[:, :])
    below = x - tw.col_max(x)
    tw.store_tile(Y[:, :], below * tw.load_tile(g) + tw.load_tile(R[:, :]))


@tw.kernel("X[M, N], R[M, N] -> Y[1, N]")
def column_products(X, R, Y):
    tw.store_tile(Y[:, :], tw.col_sum(tw.load_tile(X[:, :]) * tw.load_tile(R[:, :])))


KERNELS = (column_sums, limited_maxima, column_softmax, column_products, scaled_columns)


@pytest.mark.few(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_column_statistics_equal_golden_on_random_shapes(kernel, seed):
    rng = random.Random(seed)
    for dtype in (bf16, fp32):
        verify(kernel, "small", (side(rng, 200), side(rng, 150)), dtype)
        if kernel is not scaled_columns:  # Three loads; `tiny` has two load streams.
            verify(kernel, "tiny", (side(rng, 60), side(rng, 30)), dtype)
    verify(kernel, "large", (1, side(rng, 150)), fp32)


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [257, 521, 1000])
def test_columns_longer_than_a_box_equal_golden(rows):
    """In several slots, the last one shorter; loaded again for each phase."""
    verify(column_sums, "small", (rows, 20))
    verify(column_products, "tiny", (rows, 5))
    verify(column_softmax, "tiny", (rows, 9))
    verify(scaled_columns, "small", (rows, 9), fp32)


@pytest.mark.parametrize(
    ("kernel", "sizes"), [(column_sums, (9, 6)), (column_softmax, (7, 11))], ids=lambda each: None
)
def test_column_statistics_on_rtl_equal_golden_under_random_stalls(kernel, sizes, heavy, seed):
    verify(kernel, "tiny", sizes, backend="rtl", seed=seed % 1000, jitter=20)


def test_what_columns_on_lanes_do_not_take_passes_through_memory(seed):
    @tw.kernel("X[M, N], m[M, 1] -> Y[1, N]")
    def weighted(X, m, Y):
        tw.store_tile(Y[:, :], tw.col_sum(tw.load_tile(X[:, :]) * tw.load_tile(m[:, :])))

    @tw.kernel("X[M, N]: fp32 -> Y[1, N]: bf16")
    def rounded(X, Y):
        tw.store_tile(Y[:, :], tw.col_sum(tw.load_tile(X[:, :])))

    rng = random.Random(seed)
    for kernel in (weighted, rounded):
        compiled = compile_kernel(kernel, named["small"], dims={"M": 8, "N": 8}, dtype=bf16)
        assert len(compiled.parts) > 1
        verify(kernel, "small", (side(rng, 100), side(rng, 100)))


@tw.kernel("X[M, N] -> Y[M, N]")
def less_the_sum(X, Y):
    for j in tw.metapipe(X.shape[1]):
        x = tw.load_tile(X[:, j])
        tw.store_tile(Y[:, j], x - tw.col_sum(x))


def test_lines_of_short_vectors_begin_at_an_aligned_base(seed):
    """A block of 4 columns is 8 bytes on links of 64 bits, so its AGCUs cannot have a line each."""
    small = named["small"]
    agcu = dataclasses.replace(small.agcu, count=8)
    config = dataclasses.replace(small, width_bits=64, agcu=agcu)
    x = np.random.default_rng(seed).normal(size=(3, 27)).astype(bf16.dtype)
    assert less_the_sum.run(x, config=config, backend="emulator").verified
