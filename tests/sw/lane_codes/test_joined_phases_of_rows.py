"""Rows on lanes whose last phase keeps its results for the phases behind it, in the same PCU."""

import random

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from tests.sw.stages.region_runs import compiled_of, require_predicted, side, summary, verify


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def norm_then_silu(X, g, Y):
    """Three phases behind the statistic, of which the second takes a vector along the columns."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.silu(x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * gain))


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax_then_relu(X, Y):
    """Two statistics, and constants behind them beside those before."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        p = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], tw.maximum(p / tw.row_sum(p) * 2.0 - 0.25, 0.0))


@tw.kernel("X[M, N], g[N], R[M, N] -> Y[M, N]")
def norm_then_residual(X, g, R, Y):
    """A vector, then a tile: the second stays in a PCU of its own."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        scaled = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * gain
        tw.store_tile(Y[i, :], scaled + tw.load_tile(R[i, :]))


@tw.kernel("X[M, N], g[N] -> Y[M, N], Z[M, N]")
def norm_and_scaled(X, g, Y, Z):
    """What would be kept is stored as well."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5)
        tw.store_tile(Y[i, :], y)
        tw.store_tile(Z[i, :], y * gain)


@tw.kernel("X[M, N], s[M, 1] -> Y[M, N]")
def scaled_then_gelu(X, s, Y):
    """No statistic: packets of whole rows, which the first phase takes once."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.gelu(tw.load_tile(X[i, :]) * tw.load_tile(s[i, :])))


JOINED = [scaled_then_gelu, rms_norm, norm_then_silu, softmax_then_relu, norm_then_residual]


def by_name(kernels):
    return {"argvalues": kernels, "ids": [each.name for each in kernels]}


@pytest.mark.parametrize(
    ("kernel", "chains"),
    [
        (rms_norm, "8 chains of 1 PCUs"),
        (norm_then_silu, "8 chains of 1 PCUs"),
        (softmax_then_relu, "8 chains of 1 PCUs"),
        (norm_then_residual, "4 chains of 2 PCUs"),
        # A pair of vectors needs both words beside x, and so has a PCU of its own.
        (layer_norm, "6 chains of 2 PCUs"),
    ],
)
def test_phases_behind_statistics_need_no_pcu(kernel, chains):
    assert summary(kernel, "small", (512, 96)).startswith(chains)


def test_phases_without_statistics_need_no_chain():
    assert summary(scaled_then_gelu, "small", (2048, 16)).startswith("7 chains of 1 PCUs, 19 b")


def test_three_groups_of_rows_take_chains():
    """There are PCUs enough for each phase, which then takes less time."""
    assert "chains of 2 PCUs" in summary(rms_norm, "small", (21, 1000), fp32)


def test_three_groups_of_bf16_are_six_of_half_as_many_rows():
    """They take about half of the cycles of three chains, 18,841 (predicted)."""
    compiled = compiled_of(rms_norm, "small", (37, 1000))
    assert compiled.parts[0].pipeline.summary.startswith("6 chains of 1 PCUs")
    assert compiled.predicted_cycles < 10_500


@pytest.mark.few(7)
@pytest.mark.parametrize("chip", ["small", "large", "tiny"])
@pytest.mark.parametrize("kernel", **by_name([*JOINED, norm_and_scaled]))
def test_random_shapes_are_equal_by_bytes(kernel, chip, seed):
    rng = random.Random(seed)
    most = 60 if chip == "tiny" else 300
    for _ in range(2):
        verify(kernel, chip, (side(rng, most), side(rng, most)), rng.choice([bf16, fp32]))


@pytest.mark.few(9)
@pytest.mark.parametrize("sizes", [(1, 1), (130, 1), (5, 19), (33, 40), (17, 1030)])
@pytest.mark.parametrize("kernel", **by_name(JOINED))
def test_strips_end_within_rows(kernel, sizes):
    """A strip is eight vectors of `small`: rows of one, of some, and of some and a rest."""
    verify(kernel, "small", sizes)


def test_the_bound_of_the_lanes_is_near():
    """Three phases over each element, whichever PCU computes them."""
    chip = named["small"]
    bound = 3 * 1024 * 512 / (chip.pcu_count * chip.pcu.lanes)
    assert bound / compiled_of(rms_norm, "small", (1024, 512)).predicted_cycles >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(100, 130), (64, 19)])
@pytest.mark.parametrize("kernel", **by_name(JOINED))
def test_cycles_are_predicted(kernel, sizes, heavy):
    require_predicted(kernel, "small", sizes, bf16, 5)
