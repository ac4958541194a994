"""Columns of one element per row that lanes take once for a packet: bytes, cycles, refusals."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.run.job import Problem
from tests.sw.stages.region_runs import CHIPS, compiled_of, require_predicted, side, verify


@tw.kernel("X[M, N], m[M, 1]: fp32, r[M, 1]: fp32 -> Y[M, N]")
def normalized(X, m, r, Y):
    for i in tw.metapipe(X.shape[0]):
        d = tw.load_tile(X[i, :]) - tw.load_tile(m[i, :])
        tw.store_tile(Y[i, :], d * tw.load_tile(r[i, :]))


@tw.kernel("X[M, N], s[M, 1], Z[M, N] -> Y[M, N]")
def scaled_sum(X, s, Z, Y):
    """A tile beside the source: each chain has the column in a buffer of its own."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(
            Y[i, :], tw.load_tile(X[i, :]) * tw.load_tile(s[i, :]) + tw.load_tile(Z[i, :])
        )


@tw.kernel("X[M, N], v[M, 1]: fp32, t[1, 1] -> Y[M, N]")
def whitened(X, v, t, Y):
    """Element math on a column, and one element for all rows."""
    for i in tw.metapipe(X.shape[0]):
        r = tw.rsqrt(tw.load_tile(v[i, :]) * tw.load_tile(v[i, :]) + 1e-5)
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * r + tw.load_tile(t))


@tw.kernel("X[M, N], n[M, 1]: int32 -> Y[M, N]")
def masked_softmax(X, n, Y):
    """A number of each row beside the numbers of columns, and statistics."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        x = tw.where(tw.col_index(x) < tw.load_tile(n[i, :]), x, -tw.inf)
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


KERNELS = [normalized, scaled_sum, whitened, masked_softmax]


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", [bf16, fp32], ids=str)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_random_sides_equal_golden(kernel, chip, dtype, seed):
    draw = np.random.default_rng(seed)
    verify(kernel, CHIPS[chip], (side(draw, 400), side(draw, 300)), dtype)


@pytest.mark.parametrize(("kernel", "dtype"), [(normalized, bf16), (scaled_sum, fp32)])
def test_many_blocks_equal_golden(kernel, dtype):
    compiled = compiled_of(kernel, "small", (300, 200), dtype)
    assert "stat0 = aux" in compiled.ir("graph")
    verify(kernel, named["small"], (300, 200), dtype)


#: Kernel, chip, sides, cycles: those with a column in every packet of a column were slower.
CORPUS = [
    (normalized, "small", (512, 512), 20_500),
    (normalized, "small", (512, 1000), 40_500),
    (normalized, "large", (512, 512), 11_800),
    (scaled_sum, "large", (512, 512), 18_700),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("kernel", "chip", "sides", "most"), CORPUS)
def test_a_column_takes_no_pcu_and_no_stream_of_full_rate(kernel, chip, sides, most):
    assert compiled_of(kernel, chip, sides).predicted_cycles <= most


@tw.kernel("X[H, M, N], s[M, 1]: fp32 -> Y[H, M, N]")
def scaled_heads(X, s, Y):
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            x = tw.load_tile(X[h, i, :])
            tw.store_tile(Y[h, i, :], (x - tw.row_max(x)) * tw.load_tile(s[i, :]))


def test_iterations_of_a_launch_begin_with_the_column(seed):
    """The first phase waits for a stream, so no launch has begun another iteration at its end.

    Heads of 331 rows are no loop of rows: neither these nor 3 heads are groups of rows.
    """
    problem = Problem(scaled_heads, named["small"], {"H": 3, "M": 331, "N": 128}, bf16)
    assert [each.repeat for part in problem.compile().parts for each in part.part.launches] == [3]
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(3, 331, 128)).astype(bf16.dtype)
    s = draw.normal(size=(331, 1)).astype(np.float32)
    found = scaled_heads.run(x, s, config="small", backend="emulator")
    assert found.verified, found.problems


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_columns_on_the_rtl(kernel, seed, heavy):
    draw = np.random.default_rng(seed)
    sides = int(draw.integers(100, 300)), int(draw.integers(60, 200))
    require_predicted(kernel, "small", sides, bf16, seed)
