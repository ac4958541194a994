"""Tiles of bf16 in the lower halves of vectors: bytes of golden, and cycles of few rows."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.emulator.slots import bytes_of
from sim.run.job import Problem
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from tests.sw.stages.region_runs import LITTLE, compiled_of, require_predicted, summary, verify
from tests.sw.stages.test_long_rows import require_exact_loads
from tests.sw.stages.test_pipelines import softmax_residual

HALVES = "8 rows per vector"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kernel", "chip", "shape"),
    [
        *((softmax, LITTLE, (16, columns)) for columns in (129, 136, 137, 144, 145, 160, 161, 300)),
        *((softmax, LITTLE, (rows, 200)) for rows in (1, 8, 9, 17, 32)),
        (softmax_residual, LITTLE, (11, 143)),
        (rms_norm, LITTLE, (9, 250)),
        (softmax, "small", (9, 4057)),
        (softmax, "small", (32, 4096)),
        (rms_norm, "large", (64, 3000)),
        (layer_norm, "small", (16, 2300)),
        (layer_norm, "small", (32, 900)),
        (layer_norm, "large", (61, 515)),
    ],
)
def test_few_rows_equal_golden(kernel, chip, shape):
    compiled = compiled_of(kernel, chip, shape)
    assert HALVES in compiled.parts[0].pipeline.summary
    require_exact_loads(compiled)
    verify(kernel, chip, shape)


@tw.kernel("X[M, N] -> Y[M, N]")
def greatest(X, Y):
    """What a comparison chooses, a NaN among them."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.where(abs(x) < tw.row_max(x), 0.0, -x))


@tw.kernel("X[M, N] -> Y[M, N]: fp32, m[M, 1]: fp32")
def converted(X, Y, m):
    """A conversion makes a NaN of bf16 canonical, and leaves one of fp32 as it is."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], x.to(tw.fp32))
        tw.store_tile(m[i, :], tw.row_max(x))


@pytest.mark.few(2)
@pytest.mark.parametrize("kernel", [softmax, greatest, converted], ids=lambda each: each.name)
def test_nan_with_payloads_give_the_bytes_of_golden(kernel):
    shape = 16, 150
    assert HALVES in summary(kernel, LITTLE, shape) or kernel is converted
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32).astype(bf16.dtype)
    bits = x.view(np.uint16)
    bits[::3, 7] = 0x7F81
    bits[1::3, 9] = 0xFFC5
    for out in (bf16, fp32):
        outcome = kernel.run(x, config=LITTLE, backend="emulator", out=out)
        assert outcome.verified, outcome.problems


@pytest.mark.parametrize("width", [64, 128, 256, 512])
def test_halves_of_a_word_are_two_elements_of_its_row(width):
    """They change places in the lower half of a block of elements of two bytes."""
    short, words = width // 16, width // 32
    elements = bytes_of(np.arange(4 * short**2), 2, width)
    for position, halves in enumerate(
        bytes_of(np.arange(2 * short**2), 4, width).reshape(-1, 2, 2)
    ):
        row, column = divmod(position, words)
        first = row * short + 2 * column
        pair = elements[[first, first + 1]]
        lower = row % short < short // 2
        assert np.array_equal(halves, pair if lower else pair[::-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "shape"), [(softmax, (16, 2100)), (softmax, (31, 2057)), (rms_norm, (16, 2090))]
)
def test_few_rows_on_the_rtl(kernel, shape, seed, heavy):
    assert HALVES in summary(kernel, "small", shape)
    require_predicted(kernel, "small", shape, bf16, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "rows", "columns", "most"),
    [("small", 16, 4096, 1.02), ("small", 32, 4096, 1.02), ("large", 64, 3000, 1.10)],
)
def test_few_rows_take_about_the_cycles_of_fp32(chip, rows, columns, most, figure):
    """A group of bf16 is not twice the work of one of fp32."""

    def cycles(dtype):
        sizes = {"M": rows, "N": columns}
        return Problem(softmax, named[chip], sizes, dtype).compile().predicted_cycles

    short, words = cycles(bf16), cycles(fp32)
    figure(f"softmax {rows} x {columns}, {chip}: {short:,} cycles, {short / words:.3f} of fp32's")
    assert short <= most * words


@pytest.mark.parametrize(
    ("chip", "shape", "rows"),
    [
        ("small", (128, 4096), 16),
        ("small", (64, 4096), 8),
        ("small", (128, 300), 16),
        ("small", (64, 300), 8),
        ("small", (1, 300), 8),
        ("tiny", (4, 1500), 4),
    ],
)
def test_halves_are_taken_where_that_is_faster(chip, shape, rows):
    """Not where every PCU has a group, or in short vectors."""
    assert f"{rows} rows per vector" in summary(softmax, chip, shape)


def test_chains_that_share_pcus_take_halves():
    """The PCUs are too few for eight chains of three, but not for their first ones and four pairs.

    Of 16 rows in a vector four chains have work.
    """
    compiled = compiled_of(layer_norm, "large", (64, 1315))
    assert "8 chains of 3 PCUs, every 2 of which share" in compiled.parts[0].pipeline.summary
    assert HALVES in compiled.parts[0].pipeline.summary
    assert compiled.predicted_cycles < 0.7 * 34_032


@tw.kernel("w[N], X[M, N], b[M, 1] -> y[M, 1]")
def weighted_sums(w, X, b, y):
    for i in tw.metapipe(X.shape[0]):
        total = tw.row_sum(tw.load_tile(w) * tw.load_tile(X[i, :]))
        tw.store_tile(y[i, :], total + tw.load_tile(b[i, :]))


@pytest.mark.few(2)
@pytest.mark.parametrize("columns", [1, 4, 8, 9])
def test_rows_may_be_shorter_than_half_a_vector(columns):
    for rows in (1, 17, 40):
        verify(weighted_sums, "small", (rows, columns))
