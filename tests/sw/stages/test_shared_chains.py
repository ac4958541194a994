"""Chains that share the PCUs behind the first, and vectors along the columns taken as pairs."""

import random

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.passes import kernel_steps
from sw.stages.rows import row_choices
from tests.sw.stages.region_runs import (
    LITTLE,
    compiled_of,
    only_grids,
    require_predicted,
    side,
    summary,
    verify,
)

SHARED = "share those behind the first"


@pytest.fixture
def only_shared(monkeypatch):
    """Plans without sharing do not fit, and statistics are no part of their own."""
    monkeypatch.setattr(kernel_steps, "loads_again", lambda *_: False)
    only_grids(monkeypatch, row_choices, lambda each: each.share > 1)


@tw.kernel("X[M, N], g[N], b[N], c[N] -> Y[M, N]")
def three_programs(X, g, b, c, Y):
    """Two pairs of vectors, with a vector in both."""
    gain, bias, more = tw.load_tile(g), tw.load_tile(b), tw.load_tile(c)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        d = x - tw.row_mean(x)
        y = tw.exp(d * tw.rsqrt(tw.row_mean(d * d) + 1e-5) * gain + bias)
        tw.store_tile(Y[i, :], y * more + gain)


@tw.kernel("X[M, N]: bf16, g[N]: fp32 -> Y[M, N]: bf16")
def wider_gain(X, g, Y):
    """Vectors of four rows and two columns of a block."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * gain)


@tw.kernel("X[M, N]: fp32, g[N]: fp32, b[N]: fp32 -> Y[M, N]: bf16")
def rounded(X, g, b, Y):
    """Two columns of results in a vector."""
    gain, bias = tw.load_tile(g), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        d = x - tw.row_mean(x)
        tw.store_tile(Y[i, :], d * tw.rsqrt(tw.row_mean(d * d) + 1e-5) * gain + bias)


@tw.kernel("X[M, N], g[N] -> Y[M, N], Z[M, N]")
def two_results(X, g, Y, Z):
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        y = (x - tw.row_max(x)) * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * gain
        tw.store_tile(Y[i, :], y)
        tw.store_tile(Z[i, :], -y)


@tw.kernel("X[M, N], R[M, N], g[N], b[N] -> Y[M, N]")
def residual(X, R, g, b, Y):
    """A tile beside the results of the first program, which no shared PCU takes."""
    gain, bias = tw.load_tile(g), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        x, r = tw.load_tile(X[i, :]), tw.load_tile(R[i, :])
        d = x - tw.row_mean(x)
        tw.store_tile(Y[i, :], d * tw.rsqrt(tw.row_mean(d * d) + 1e-5) * gain + bias + r)


@tw.kernel("X[M, N], g[N], b[N] -> Y[M, N]")
def affine(X, g, b, Y):
    """No statistic: packets are single columns."""
    gain, bias = tw.load_tile(g), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * gain + bias)


@tw.kernel("X[M, N], g[N], b[N] -> Y[M, N]")
def pair_before_maximum(X, g, b, Y):
    """A pair beside the source of the first program."""
    gain, bias = tw.load_tile(g), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :]) * gain + bias
        tw.store_tile(Y[i, :], x - tw.row_max(x))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kernel", "chip", "shape", "dtype"),
    [
        *((layer_norm, "small", (300, columns), bf16) for columns in (1, 7, 16, 131, 300)),
        *((layer_norm, "small", (rows, 100), bf16) for rows in (96, 97, 200)),
        (layer_norm, "large", (900, 250), bf16),
        (layer_norm, "small", (150, 130), fp32),
        (layer_norm, "large", (500, 77), fp32),
        (rms_norm, "large", (400, 131), bf16),
        (rms_norm, "large", (300, 260), fp32),
        (three_programs, "small", (200, 90), bf16),
        (three_programs, "large", (400, 61), fp32),
        (wider_gain, "large", (400, 99), bf16),
        (rounded, "large", (400, 101), fp32),
        (two_results, "large", (500, 40), bf16),
        # In pieces.
        (layer_norm, LITTLE, (70, 200), bf16),
        (rms_norm, LITTLE, (100, 333), bf16),
        (rms_norm, LITTLE, (50, 300), fp32),
        (layer_norm, "large", (100, 4001), bf16),
    ],
)
def test_shared_chains_equal_golden(kernel, chip, shape, dtype, only_shared):
    assert SHARED in summary(kernel, chip, shape, dtype)
    verify(kernel, chip, shape, dtype)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kernel", [residual, affine, pair_before_maximum, layer_norm], ids=lambda kernel: kernel.name
)
def test_pairs_equal_golden_on_random_shapes(kernel, seed):
    rng = random.Random(seed)
    for dtype in (bf16, fp32):
        verify(kernel, "small", (side(rng, 150), side(rng, 150)), dtype)
        if kernel is not residual:  # Four loads; `tiny` has two load streams.
            verify(kernel, "tiny", (side(rng, 40), side(rng, 40)), dtype)
    verify(kernel, "small", (33, 3000))


def test_two_vectors_of_one_format_take_one_program():
    assert "chains of 1 PCUs" in summary(affine, "small", (100, 100))
    assert "chains of 2 PCUs" in summary(layer_norm, "small", (100, 100))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "chip", "shape", "most"),
    [(layer_norm, "small", (1152, 256), 1.12), (rms_norm, "large", (1728, 256), 1.12)],
)
def test_all_pcus_of_shared_chains_work(kernel, chip, shape, most, figure):
    """Cycles over those of all phases on all PCUs, a vector of 16 elements in 8 cycles."""
    rows, columns = shape
    compiled = compiled_of(kernel, chip, shape)
    phases = 4 if kernel is layer_norm else 3
    least = phases * rows * columns / named[chip].pcu.lanes / named[chip].pcu_count
    share = compiled.predicted_cycles / least
    figure(f"{kernel.name} {rows} x {columns}, {chip}: {share:.3f} of the least cycles")
    assert share <= most


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def numbers_behind(X, g, Y):
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * gain
        tw.store_tile(Y[i, :], tw.where(tw.col_index(x) < 5, y, 0.0))


def test_numbers_of_columns_behind_the_first_program_are_a_part_of_their_own():
    """Packets there are single columns, or columns of several vectors."""
    compiled = compiled_of(numbers_behind, "small", (20, 100))
    assert [each.shape for each in compiled.intermediates] == [(20, 100)]
    verify(numbers_behind, "small", (20, 100))
    verify(numbers_behind, "tiny", (9, 30))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "shape", "dtype"),
    [
        (layer_norm, (200, 130), bf16),
        (layer_norm, (150, 77), fp32),
        (three_programs, (130, 90), bf16),
        (affine, (100, 100), bf16),
    ],
)
def test_shared_chains_on_the_rtl(kernel, shape, dtype, seed, heavy):
    require_predicted(kernel, "small", shape, dtype, seed)


@pytest.mark.slow
def test_shared_rows_in_pieces_on_the_rtl(only_shared, seed, heavy):
    require_predicted(rms_norm, LITTLE, (100, 300), bf16, seed)
