"""Numbers of rows and columns in lane programs: along a reduced axis, as a whole."""

import numpy as np
import pytest

import tilewright as tw
from sw.language.program_error import ProgramError


@tw.kernel("X[M, N] -> first[1, N]: int32, last[1, N]: int32")
def places_in_columns(X, first, last):
    M, N = X.shape
    for j in tw.metapipe(N):
        x = tw.load_tile(X[:, j])
        rows = tw.row_index(x)
        tw.store_tile(first[:, j], tw.col_min(tw.where(x > 0.0, rows, M)))
        tw.store_tile(last[:, j], tw.col_max(tw.where(x > 0.0, rows, 0)))


@tw.kernel("X[M, N] -> Y[M, N]: int32")
def numbered_elements(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.where(x > 0.0, tw.col_index(x), 0))


@tw.kernel("X[M, N] -> Y[M, 1]: int32")
def numbered_rows(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.row_min(tw.where(x > 0.0, tw.row_index(x), 0)))


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (37, 1), (50, 33), (300, 20)])
def test_first_and_last_row_of_each_column(rows, columns, seed):
    x = np.random.default_rng(seed).choice([-1.0, 1.0], (rows, columns)).astype(np.float32)
    found = places_in_columns.run(x, config="small", backend="emulator")
    number = np.arange(rows, dtype=np.int32)[:, None]
    assert (found.first == np.where(x > 0, number, rows).min(axis=0)).all()
    assert (found.last == np.where(x > 0, number, 0).max(axis=0)).all()


@tw.kernel("X[M, N] -> Y[M, 1]: int32")
def numbers_from_one(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.row_min(tw.where(x > 0.0, tw.col_index(x) + 1, 0)))


def test_numbers_of_another_axis_are_refused():
    with pytest.raises(ProgramError, match="lanes have numbers along one axis, all of it"):
        numbered_rows.run(np.ones((8, 8), np.float32), config="small", backend="emulator")


def test_elements_may_be_their_numbers(seed):
    x = np.random.default_rng(seed).normal(size=(20, 50)).astype(np.float32)
    found = numbered_elements.run(x, config="small", backend="emulator")
    assert found.verified, found.problems


def test_numbers_that_are_computed_with_are_not_reduced():
    with pytest.raises(ProgramError, match="Lanes do not reduce int32"):
        numbers_from_one.run(np.ones((8, 8), np.float32), config="small", backend="emulator")


@tw.kernel("X[M, N] -> Y[M, 1]: int32")
def first_of_the_largest(X, Y, none=2**31 - 1):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.row_min(tw.where(x == tw.row_max(x), tw.col_index(x), none)))


def test_constants_whose_bits_are_a_nan_are_not_reduced(seed):
    """The least of numbers and 2^31 - 1 was taken as that of fp32 with a NaN among them."""
    x = np.random.default_rng(seed).choice([-1.0, 1.0], (20, 50)).astype(np.float32)
    with pytest.raises(ProgramError, match="constants from 0 to 2,139,095,040"):
        first_of_the_largest.run(x, config="small", backend="emulator")
    found = first_of_the_largest.run(x, config="small", backend="emulator", none=2_139_095_040)
    assert found.verified, found.problems


@tw.kernel("X[M, N], Z[M, N] -> Y[M, N]: fp32, W[M, N]: fp32")
def whole_products(X, Z, Y, W):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], (x * -3).to(tw.fp32))
        tw.store_tile(W[i, :], tw.reciprocal((x * tw.load_tile(Z[i, :])).to(tw.fp32)))


@pytest.mark.parametrize("chip", ["tiny", "small"])
def test_whole_products_have_no_negative_zero(chip, seed):
    """0 · -3 was -0, and its reciprocal -infinity."""
    x, z = np.random.default_rng(seed).integers(-2, 3, (2, 9, 40), np.int8)
    found = whole_products.run(x, z, config=chip, backend="emulator")
    assert found.verified, found.problems
