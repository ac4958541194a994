"""Tensors of one element per row or per column on chips, as inputs and as results."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.numeric.formats import bf16, fp32
from tests.sw.stages.region_runs import side, verify


@tw.kernel("X[M, N] -> Y[M, 1]")
def row_norm(X, Y):
    """A statistic, of which more is computed."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.rsqrt(tw.row_mean(x * x) + 1e-5))


@tw.kernel("X[M, N], m[M, 1] -> Y[M, N]")
def shifted(X, m, Y):
    """No statistic: blocks of columns would do as well."""
    for i in tw.metapipe(X.shape[0]):
        for j in tw.metapipe(X.shape[1]):
            x, shift = tw.load_tile(X[i, j]), tw.load_tile(m[i, :])
            tw.store_tile(Y[i, j], tw.exp(x - shift))


@tw.kernel("X[M, N], m[M, 1], g[N] -> Y[M, N]")
def scaled(X, m, g, Y):
    """A vector along the rows and one along the columns."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        scale = tw.rsqrt(tw.load_tile(m[i, :]))
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * scale * gain)


@tw.kernel("X[M, N], m[M, 1] -> Y[M, N]")
def softmax_of_maxima(X, m, Y):
    """A row value beside statistics, in two phases."""
    for i in tw.metapipe(X.shape[0]):
        e = tw.exp(tw.load_tile(X[i, :]) - tw.load_tile(m[i, :]))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("X[M, N], m[M, 1] -> Y[M, 1]")
def later_maximum(X, m, Y):
    """A result of one element per row from a statistic and a row value."""
    for i in tw.metapipe(X.shape[0]):
        x, m0 = tw.load_tile(X[i, :]), tw.load_tile(m[i, :])
        tw.store_tile(Y[i, :], tw.maximum(tw.row_max(x), tw.row_sum(m0)))


@tw.kernel("m[M, 1], g[N] -> Y[M, N]")
def outer(m, g, Y):
    """No tile of rows and columns among the inputs."""
    row = tw.load_tile(g)
    for i in tw.metapipe(m.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(m[i, :]) * row)


@tw.kernel("X[M, N]: bf16, m[M, 1]: fp32 -> Y[M, N]: fp32")
def wider_row_value(X, m, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) - tw.load_tile(m[i, :]))


@tw.kernel("X[M, N]: fp32, m[M, 1]: bf16, R[M, N]: int8 -> Y[M, N]: bf16")
def narrower_tiles(X, m, R, Y):
    """Formats with more elements per vector than the source."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :]) - tw.load_tile(m[i, :])
        tw.store_tile(Y[i, :], x * tw.load_tile(R[i, :]).to(tw.fp32))


@tw.kernel("X[M, N]: fp32 -> Y[M, 1]: bf16")
def rounded_sum(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.row_sum(tw.load_tile(X[i, :])))


@tw.kernel("X[M, N]: bf16 -> Y[M, 1]: fp32")
def exact_sum(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.row_sum(tw.load_tile(X[i, :])))


@tw.kernel("X[M, N]: fp32, g[N]: bf16 -> Y[M, N]: bf16")
def rounded_norm(X, g, Y):
    """Results shorter than the source of the statistics: rounded by a program of their own."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], (x - tw.row_max(x)) * gain)


@tw.kernel("X[M, N]: fp32 -> Y[M, N]: bf16")
def rounded_softmax(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("X[M, N], t[1] -> Y[M, N]")
def heated(X, t, Y):
    """One number for all elements, as if it were that of every row."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * tw.load_tile(t))


@tw.kernel("X[M, N], t[1, 1] -> Y[M, N]")
def heated_softmax(X, t, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :]) * tw.load_tile(t)
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("X[M, N], t[1, 1] -> Y[M, N]")
def shifted_columns(X, t, Y):
    """One number beside statistics of columns."""
    x = tw.load_tile(X)
    tw.store_tile(Y, (x + tw.load_tile(t)) - tw.col_max(x))


@tw.kernel("X[M, N] -> Y[M, N]")
def clipped(X, Y):
    """One number that is computed of all."""
    x = tw.load_tile(X)
    y = tw.minimum(tw.maximum(x, -100.0), 100.0)
    tw.store_tile(Y, x / tw.maximum(tw.sqrt(tw.col_sum(tw.row_sum(y * y))), 1.0))


IN_ONE_FORMAT = (row_norm, shifted, softmax_of_maxima, later_maximum, outer, scaled)
IN_ONE_FORMAT += (heated, heated_softmax, shifted_columns, clipped)
IN_SEVERAL = (
    wider_row_value,
    rounded_sum,
    exact_sum,
    rounded_norm,
    rounded_softmax,
    narrower_tiles,
)


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", IN_ONE_FORMAT, ids=lambda kernel: kernel.name)
def test_row_values_equal_golden_on_random_shapes(kernel, seed):
    rng = random.Random(seed)
    for dtype in (bf16, fp32):
        verify(kernel, "small", (side(rng, 150), side(rng, 150)), dtype)
        if kernel is not scaled:  # Three loads; `tiny` has two load streams.
            verify(kernel, "tiny", (side(rng, 40), side(rng, 40)), dtype)
    verify(kernel, "large", (side(rng, 150), 1))


@pytest.mark.few(3)
@pytest.mark.parametrize("kernel", IN_SEVERAL, ids=lambda kernel: kernel.name)
def test_row_values_of_other_formats_equal_golden(kernel, seed):
    rng = random.Random(seed)
    verify(kernel, "small", (side(rng, 150), side(rng, 150)))
    if kernel is not narrower_tiles:
        verify(kernel, "tiny", (side(rng, 40), side(rng, 40)))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "kernel", [shifted, row_norm, rounded_sum, heated], ids=lambda each: each.name
)
def test_row_values_on_rtl_equal_golden_under_random_stalls(kernel, heavy, seed):
    verify(kernel, "tiny", (7, 10), backend="rtl", seed=seed % 1000, jitter=20)


def test_tensors_of_one_axis_and_of_one_row(seed):
    @tw.kernel("X[N], Z[N] -> Y[N]")
    def sums(X, Z, Y):
        tw.store_tile(Y[:], tw.load_tile(X[:]) + tw.load_tile(Z[:]))

    @tw.kernel("X[1, N], g[N] -> Y[1, N]")
    def gained(X, g, Y):
        tw.store_tile(Y[:, :], tw.load_tile(X[:, :]) * tw.load_tile(g))

    @tw.kernel("X[N] -> Y[1]")
    def total(X, Y):
        tw.store_tile(Y[:], tw.row_sum(tw.load_tile(X[:])))

    draw = np.random.default_rng(seed)
    x, z = (draw.normal(size=seed % 300 + 1).astype(bf16.dtype) for _ in range(2))
    for kernel, arrays in ((sums, (x, z)), (gained, (x[None], z)), (total, (x,))):
        for config in ("tiny", "small"):
            assert kernel.run(*arrays, config=config, backend="emulator").verified


@tw.kernel("X[M, N] -> Y[M, N]: bf16")
def rounded_by_cast(X, Y):
    """The cast says nothing more than the store."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.exp(x - tw.row_max(x)).to(tw.bf16))


@tw.kernel("X[M, N] -> Y[M, N]: bf16")
def rounded_by_store(X, Y):
    """The same, with one rounding as well."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.exp(x - tw.row_max(x)))


@pytest.mark.parametrize("columns", [1, 17, 33])
def test_a_cast_to_the_stored_format_costs_nothing(columns):
    verify(rounded_by_cast, "small", (20, columns), fp32)
    sizes = {"M": 20, "N": columns}
    cast, stored = (
        kernel.compile("small", dtype=fp32, **sizes)
        for kernel in (rounded_by_cast, rounded_by_store)
    )
    assert cast.image == stored.image
