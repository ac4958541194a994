"""Numbers of columns and rows: compared with every int32, with and without reductions."""

import dataclasses

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem

LOWEST = -(2**31)
#: Numbers that are no column: −0, NaN and infinities as fp32, and one behind the last column.
OTHERS = [LOWEST, LOWEST + 1, -1, -5, 0x7FC00000, 0x7F800000, 0x7FFFFFFF, 0x7F800001, 1000]


@tw.kernel("X[M, N], c[M, 1]: int32 -> Y[M, 1]: fp32, Z[M, 1]: fp32")
def picked(X, c, Y, Z):
    for i in tw.metapipe(X.shape[0]):
        x, own = tw.load_tile(X[i, :]), tw.load_tile(c[i, :])
        tw.store_tile(Y[i, :], tw.row_sum(tw.where(tw.col_index(x) == own, x, 0.0)))
        tw.store_tile(Z[i, :], tw.row_sum(tw.where(own != tw.col_index(x), x, 0.0)))


@tw.kernel("X[M, N] -> Y[M, 1]: fp32")
def third(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.row_sum(tw.where(tw.col_index(x) == 3, x, 0.0)))


@tw.kernel("X[M, N], c[1, N]: int32 -> Y[1, N]: fp32")
def picked_rows(X, c, Y):
    x = tw.load_tile(X)
    tw.store_tile(Y, tw.col_sum(tw.where(tw.row_index(x) == tw.load_tile(c), x, 0.0)))


def numbers(rng, count, most):
    special = rng.choice([0, *OTHERS], count)
    drawn = np.where(rng.random(count) < 0.4, special, rng.integers(0, most, count))
    return drawn.astype(np.int32)


@pytest.mark.few(3)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("dtype", [tw.bf16, tw.fp32], ids=str)
def test_elements_are_picked_by_any_number(chip, dtype, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 60, 2)
    x = rng.integers(-20, 20, (rows, columns)).astype(dtype.dtype)
    own = numbers(rng, rows, columns)
    found = picked.run(x, own[:, np.newaxis], config=chip, backend="emulator")
    assert found.verified, found.problems
    equal = np.arange(columns) == own[:, np.newaxis]
    wide = x.astype(np.float32)
    for name, taken in (("Y", equal), ("Z", ~equal)):
        assert (found.outputs[name] == np.where(taken, wide, 0).sum(1, keepdims=True)).all()


def test_a_constant_and_rows_are_compared_as_well(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-20, 20, (9, 40)).astype(np.float32)
    found = third.run(x, config="small", backend="emulator")
    assert found.verified and (found.outputs["Y"] == x[:, 3:4]).all()
    own = numbers(rng, 40, 9)
    found = picked_rows.run(x, own[np.newaxis], config="small", backend="emulator")
    assert found.verified
    equal = np.arange(9)[:, np.newaxis] == own
    assert (found.outputs["Y"] == np.where(equal, x, 0).sum(0, keepdims=True)).all()


def test_an_equality_takes_one_pass_over_a_row():
    """The numbers of the rows come once, as a statistic; then each element is compared."""
    problem = Problem(picked, named["small"], {"M": 64, "N": 64}, tw.bf16)
    lines = problem.compile().ir("graph").splitlines()
    lanes = next(each for each in lines if each.startswith("pcu0_0_0: lanes: "))
    phases = lanes.removeprefix("pcu0_0_0: lanes: ").partition(";")[0].split(", then ")
    assert phases[0] == "stat0 = aux" and phases[2] == "stat1 = sum of x if row == stat0 else 0"
    assert "row" not in phases[1] + phases[3] and len(phases) == 4


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def first_columns(X, g, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        y = tw.where(tw.col_index(x) < 7, tw.exp(x), x) * tw.load_tile(g)
        tw.store_tile(Y[i, :], y)


@tw.kernel("X[M, N] -> Y[M, N]")
def first_rows(X, Y):
    x = tw.load_tile(X)
    tw.store_tile(Y, tw.where(tw.row_index(x) >= 5, x * 2.0, -tw.inf))


@tw.kernel("S[M, N], last[M, 1]: int32 -> Y[M, N]")
def hidden_softmax(S, last, Y):
    """Softmax of the columns up to a number of each row."""
    for i in tw.metapipe(S.shape[0]):
        s = tw.load_tile(S[i, :])
        s = tw.where(tw.col_index(s) <= tw.load_tile(last[i, :]), s, -1e30)
        e = tw.exp(s - tw.row_max(s))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("X[M, N] -> Y[M, N]: int32")
def where_positive(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.where(x > 0.0, tw.col_index(x), -1))


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
def test_numbers_need_no_reduction(chip, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 90, 2)
    x = rng.normal(size=(rows, columns)).astype(tw.bf16.dtype)
    g = rng.normal(size=columns).astype(tw.bf16.dtype)
    last = numbers(rng, rows, columns)[:, np.newaxis]
    cases = ((first_columns, x, g), (first_rows, x), (hidden_softmax, x, last), (where_positive, x))
    for kernel, *arrays in cases:
        found = kernel.run(*arrays, config=chip, backend="emulator")
        assert found.verified, (kernel.name, found.problems)
    assert (found.Y == np.where(x > 0, np.arange(columns), -1)).all()


@tw.kernel("X[M, N] -> Y[M, N]")
def lower(X, Y):
    x = tw.load_tile(X)
    tw.store_tile(Y, tw.where(tw.col_index(x) <= tw.row_index(x), x, 0.0))


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> Y[M, D]")
def causal(Q, K, V, Y, exact=False):
    M, D = Q.shape
    k, v = tw.load_tile(K), tw.load_tile(V)
    for i in tw.metapipe(M):
        s = tw.load_tile(Q[i, :]) @ k.T * D**-0.5
        s = tw.where(tw.row_index(s) >= tw.col_index(s), s, -tw.inf)
        e = tw.exp(s - tw.row_max(s))
        tw.store_tile(Y[i, :], (e.to(V.dtype) @ v) / tw.row_sum(e))


@tw.kernel("X[M, N] -> Y[M, N], R[M, 1]: int32, C[1, N]: int32")
def constants(X, Y, R, C):
    M, N = X.shape
    for i in tw.metapipe(M):
        tw.store_tile(Y[i, :], tw.full(i, N, 1.5))
        tw.store_tile(R[i, :], tw.row_index(i))
    for j in tw.metapipe(N):
        tw.store_tile(C[:, j], tw.col_index(j) * 2 + 1)


@tw.kernel("X[M, N] -> Y[M, N]: fp32")
def running_sums(X, Y):
    """Sums of the first columns of each row: a product with a triangle of ones."""
    M, N = X.shape
    ones = tw.where(tw.row_index(N) <= tw.col_index(N), 1.0, 0.0).to(tw.bf16)
    for i in tw.metapipe(M):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) @ ones)


@pytest.mark.few(1)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
def test_numbers_along_both_axes_are_a_part_more(chip, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 90, 2)
    x = rng.normal(size=(rows, columns)).astype(tw.bf16.dtype)
    found = lower.run(x, config=chip, backend="emulator")
    assert found.verified and (found.Y == np.tril(x.astype(np.float32))).all()
    found = running_sums.run(x, config=chip, backend="emulator")
    assert found.verified
    assert np.allclose(found.Y, np.cumsum(x.astype(np.float32), axis=1), atol=1e-3)
    arrays = (rng.normal(size=(n, 32)).astype(tw.bf16.dtype) for n in (rows, columns, columns))
    arrays = tuple(arrays)
    for exact in (False, True):
        found = causal.run(*arrays, config=chip, backend="emulator", exact=exact)
        assert found.verified, found.problems


@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
def test_constants_are_stored_without_a_load(chip, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 90, 2)
    x = np.zeros((rows, columns), tw.bf16.dtype)
    found = constants.run(x, config=chip, backend="emulator")
    assert found.verified and (found.Y == 1.5).all()
    assert (found.R == np.arange(rows)[:, np.newaxis]).all()
    assert (found.C == 2 * np.arange(columns) + 1).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [lower, constants], ids=lambda each: each.name)
def test_numbers_on_the_rtl(kernel, seed, heavy):
    job = Job(Problem(kernel, named["tiny"], {"M": 19, "N": 21}, tw.bf16), seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems


def test_masked_scores_are_kept_beside_their_maxima():
    """Whole rows under a mask take five parts: numbers, scores, masks, powers, quotients."""
    problem = Problem(causal, named["small"], {"M": 64, "D": 32, "S": 64}, tw.bf16)
    assert len(problem.compile().parts) == 1
    compiled = dataclasses.replace(problem, options={"exact": True}).compile()
    assert len(compiled.parts) == 5
    numbers = [each for each in compiled.intermediates if each.format == tw.int32]
    assert [each.shape for each in numbers] == [(64, 1)]
