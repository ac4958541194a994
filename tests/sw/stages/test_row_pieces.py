"""Rows in pieces: each column once and in order, golden's bytes, cycles that grow evenly."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.descriptor import MAX_BOX
from hw.arch.pmu import EngineProgram, SlotRing
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32
from sim.run.job import Problem
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from sw.stages.long_rows import chunks_of, pieces_of
from sw.stages.rows.row_pieces import RowPieces
from tests.hw.step_model import moves_of
from tests.sw.stages.region_runs import operand, require_predicted, verify

#: Columns on `tiny` whose full vectors are a prime number, with and without a shorter one behind
#: them; a vector less, and one more.
PRIMES = {fp32: (614, 615, 612, 616), bf16: (844, 847, 840, 848)}


@pytest.mark.parametrize("columns", [2, 3, 16, 17, 64, 65, 127, 614, 615, 2998, 2999, 5000])
@pytest.mark.parametrize(("vector", "most"), [(2, 2), (2, 128), (4, 50), (16, 16), (16, 1024)])
def test_pieces_cover_a_row_and_are_about_equal(columns, vector, most):
    if columns < vector:
        return
    pieces = RowPieces.fitting(columns, vector, most)
    vectors, fits = ceil_div(columns, vector), min(most, MAX_BOX) // vector
    assert pieces.slots == ceil_div(vectors, fits)
    assert pieces.size <= fits
    assert pieces.size - ceil_div(pieces.last, vector) < pieces.slots
    windows, slots = pieces.windows()
    for loops, step in ((pieces.steps(1, 1), 1), (pieces.steps(vector, vector), vector)):
        ring = SlotRing(stride=pieces.width, count=pieces.slots)
        engine = EngineProgram(ring, (loops,), windows=windows, slots=slots)
        assert [each.position for each in moves_of(engine)] == [*range(0, columns, step)]


@pytest.mark.parametrize("form", [bf16, fp32], ids=str)
@pytest.mark.parametrize("vector", [2, 4, 8, 16])
def test_pieces_of_a_box_hold_a_row_and_pad_it_least(form, vector):
    for columns in range(MAX_BOX + 1, 3000, 7):
        length, count = pieces_of(columns, form, vector)
        unit = max(vector, 128 // form.bits)
        others = range(ceil_div(MAX_BOX // 8, unit) * unit, MAX_BOX + 1, unit)
        assert length in others
        assert chunks_of(columns, form, vector) * vector == length * count
        for other in others:
            padded = ceil_div(columns, other) * other
            assert (length * count, -length) <= (padded, -other)
        assert columns <= length * count <= 1.1 * (columns + unit)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", PRIMES, ids=str)
def test_prime_numbers_of_vectors_equal_golden(dtype):
    for columns in PRIMES[dtype]:
        verify(softmax, "tiny", (9, columns), dtype)
        verify(rms_norm, "tiny", (5, columns), dtype)
    # 53 and 59 vectors, as one box of pieces.
    for columns in (421, 465):
        verify(layer_norm, "small", (9, columns * (32 // dtype.bits)), dtype)


@tw.kernel("X[N] -> Y[N]")
def softmax_of_a_row(X, Y):
    x = tw.load_tile(X)
    e = tw.exp(x - tw.row_max(x))
    tw.store_tile(Y, e / tw.row_sum(e))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", PRIMES, ids=str)
@pytest.mark.parametrize("columns", [50, 300, 4000])
def test_a_tensor_of_one_axis_is_a_row_of_any_length(columns, dtype):
    x = operand(np.random.default_rng(columns), (columns,), dtype)
    outcome = softmax_of_a_row.run(x, config="small", backend="emulator")
    assert outcome.verified, outcome.problems


@pytest.mark.parametrize("dtype", PRIMES, ids=str)
@pytest.mark.parametrize("kernel", [softmax, rms_norm], ids=lambda each: each.name)
@pytest.mark.few(1)
def test_a_prime_number_of_vectors_on_the_rtl(kernel, dtype, seed, heavy):
    require_predicted(kernel, "tiny", (5, PRIMES[dtype][1]), dtype, seed)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("chip", "rows", "widths", "piece", "dtype"),
    [
        ("tiny", 5, (508, 509, 521, 614, 618, 1021, 2999), 128, fp32),
        ("tiny", 5, (844, 847, 1021), 128, bf16),
        ("small", 64, (421, 465, 1021), 64, fp32),
        ("small", 40, (1021, 4057), 256, bf16),
    ],
)
def test_cycles_grow_with_the_width(chip, rows, widths, piece, dtype, figure):
    """No width takes much longer than the next larger multiple of a piece."""

    def cycles(columns):
        sizes = {"M": rows, "N": columns}
        return Problem(softmax, named[chip], sizes, dtype).compile().predicted_cycles

    for columns in widths:
        found, wider = cycles(columns), cycles(ceil_div(columns, piece) * piece)
        figure(f"softmax {rows} x {columns}, {chip}: {found:,} cycles, {found / wider:.3f}")
        assert found <= 1.3 * wider
