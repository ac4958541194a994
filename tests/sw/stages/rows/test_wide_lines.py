"""Lines of more chains than one buffer of results takes: two buffers, which one store serves."""

import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig
from hw.numeric.formats import bf16, fp32
from sw.fabric.merges import MOST_COLLECTED
from sw.kernels.argmax import argmax
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from sw.stages.rows import row_choices
from tests.sw.stages.region_runs import compiled_of, only_grids, require_predicted, verify

#: 32 PCUs of one AGCU.
ONE = ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=1))
TWO = ChipConfig(rows=12, columns=12, agcu=AgcuConfig(count=2))


@tw.kernel("X[M, N], g[N] -> Y[M, N], Z[M, N], S[M, 1]")
def three_results(X, g, Y, Z, S):
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        most = tw.row_max(x)
        tw.store_tile(S[i, :], most)
        y = (x - most) * gain
        tw.store_tile(Y[i, :], y)
        tw.store_tile(Z[i, :], -y)


@pytest.fixture
def only_wide(monkeypatch):
    """Plans of narrower lines do not fit."""
    only_grids(monkeypatch, row_choices, lambda each: each.copies > MOST_COLLECTED)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kernel", "chip", "shape", "dtype"),
    [
        *((softmax, ONE, (rows, 70), bf16) for rows in (129, 160, 161, 256, 300, 700)),
        *((softmax, ONE, (200, columns), bf16) for columns in (1, 17, 64, 260, 512)),
        (softmax, ONE, (100, 333), fp32),
        (softmax, ONE, (300, 2000), bf16),
        (argmax, ONE, (300, 40), bf16),
        (rms_norm, ONE, (200, 131), bf16),
        (rms_norm, TWO, (900, 50), fp32),
        (layer_norm, ONE, (400, 99), bf16),
        (layer_norm, TWO, (400, 260), fp32),
        (three_results, "large", (300, 64), bf16),
    ],
)
def test_wide_lines_equal_golden(kernel, chip, shape, dtype, only_wide):
    verify(kernel, chip, shape, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "chip", "shape", "eight", "more"),
    [
        (softmax, ONE, (1024, 512), 66_744, 57_771),
        (rms_norm, TWO, (1024, 512), 34_931, 26_360),
        (layer_norm, TWO, (1500, 400), 60_508, 37_332),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_more_chains_than_two_lines_of_eight_work(kernel, chip, shape, eight, more, monkeypatch):
    """The table of docs/stages.md."""
    assert compiled_of(kernel, chip, shape).predicted_cycles == more
    only_grids(monkeypatch, row_choices, lambda each: each.copies <= MOST_COLLECTED)
    assert compiled_of(kernel, chip, shape).predicted_cycles == eight


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "shape", "dtype"),
    [(softmax, (500, 100), bf16), (softmax, (160, 50), fp32), (rms_norm, (300, 77), bf16)],
)
def test_wide_lines_on_the_rtl(kernel, shape, dtype, only_wide, seed, heavy):
    require_predicted(kernel, "large", shape, dtype, seed)
