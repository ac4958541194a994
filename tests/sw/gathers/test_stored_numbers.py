"""Gathers by numbers that the kernel computes, or that no vector holds."""

import numpy as np
import pytest

import tilewright as tw
from tests.sw.verified_kernels import verified

BF16 = tw.bf16.dtype


def greatest(x):
    """Column of the maximum of each row."""
    return tw.row_min(tw.where(x == tw.row_max(x), tw.col_index(x), x.cols))


@tw.kernel("X[M, D], C[N, D] -> n[M, 1]: int32, Y[M, D]")
def nearest(X, C, n, Y):
    """The number of the code nearest to each row, and the code."""
    c = tw.load_tile(C)
    for i in tw.metapipe(X.shape[0]):
        near = 2.0 * (tw.load_tile(X[i, :]) @ c.T) - tw.row_sum(c * c).T
        number = greatest(near)
        tw.store_tile(n[i, :], number)
        tw.store_tile(Y[i, :], tw.gather(C, number))


@tw.kernel("X[H, M, E], C[E, D] -> Y[H, M, D]")
def routed(X, C, Y):
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            tw.store_tile(Y[h, i, :], tw.gather(C, greatest(tw.load_tile(X[h, i, :]))))


@tw.kernel("X[M, E], C[E, D], W[D, D] -> Y[M, D]")
def multiplied(X, C, W, Y):
    tw.store_tile(Y, tw.gather(C, greatest(tw.load_tile(X))) @ tw.load_tile(W))


@tw.kernel("X[M, E], C[E, D], g[D] -> Y[M, D]")
def computed(X, C, g, Y):
    for i in tw.metapipe(X.shape[0]):
        rows = tw.gather(C, greatest(tw.load_tile(X[i, :])).T)
        tw.store_tile(Y[i, :], tw.maximum(rows * tw.load_tile(g), 0.0))


@tw.kernel("n[M, 1]: int32, C[E, D] -> Y[M, D]")
def of_a_column(n, C, Y):
    for i in tw.metapipe(n.shape[0]):
        tw.store_tile(Y[i, :], tw.gather(C, tw.load_tile(n[i, :])))


@tw.kernel("n[1, M]: int32, C[E, D] -> Y[M, D]")
def of_a_row(n, C, Y):
    tw.store_tile(Y, tw.gather(C, tw.load_tile(n)))


CASES = (
    (nearest, {"M": 37, "N": 24, "D": 16}),
    (routed, {"H": 3, "M": 20, "E": 9, "D": 24}),
    (multiplied, {"M": 21, "E": 10, "D": 16}),
    (computed, {"M": 33, "E": 7, "D": 40}),
    (of_a_column, {"M": 35, "E": 9, "D": 16}),
    (of_a_row, {"M": 35, "E": 9, "D": 16}),
)


@pytest.mark.few(3)
@pytest.mark.parametrize(("kernel", "sizes"), CASES, ids=lambda each: getattr(each, "name", None))
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_rows_by_stored_numbers_have_golden_s_bits(kernel, sizes, config, seed):
    verified(kernel, sizes, config, seed, backend="emulator")


@pytest.mark.few(1)
@pytest.mark.parametrize(("kernel", "sizes"), CASES, ids=lambda each: getattr(each, "name", None))
def test_rows_by_stored_numbers_on_the_rtl(kernel, sizes, seed, heavy):
    verified(kernel, sizes, "tiny", seed)


def test_codes_are_the_nearest_of_their_rows(seed):
    rng = np.random.default_rng(seed)
    rows, codes = (rng.integers(-9, 9, (n, 16)).astype(BF16) for n in (37, 24))
    found = nearest.run(rows, codes, config="small", backend="emulator")
    assert found.verified, found.problems
    wide, each = rows.astype(np.int64), codes.astype(np.int64)
    number = (2 * wide @ each.T - (each * each).sum(1)).argmax(1)
    assert (found.n[:, 0] == number).all()
    assert (found.Y == codes[number]).all()
