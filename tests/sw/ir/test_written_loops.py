"""Sums of products that are written out term by term are the loops over points they write out."""

import functools

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.ir.nodes import Loop
from sw.ir.rewrite import walk
from sw.passes.accumulate import accumulate
from sw.passes.check import check

SIZES = {"P": 16, "C": 8, "T": 4, "D": 5, "M": 10}


def written(spelling):
    """A kernel whose sum over the taps of a filter is that of a function."""

    @tw.kernel("X[P, C], W[T, C, D], V[T, D, C], R[M, D] -> Y[M, D]")
    def taps(X, W, V, R, Y):
        for i in tw.metapipe(Y.shape[0]):
            x = functools.partial(shifted, X, i)
            tw.store_tile(Y[i, :], spelling(i, x, W, V, R))

    return taps


def shifted(X, i, t):
    return tw.load_tile(X[i.start + t : i.stop + t, :])


def plain(i, x, W, V, R):
    acc = tw.zeros(i, W.shape[2])
    for t in range(4):
        acc += x(t) @ tw.load_tile(W[t])
    return acc


def without_zeros(i, x, W, V, R):
    acc = x(0) @ tw.load_tile(W[0])
    for t in range(1, 4):
        acc = x(t) @ tw.load_tile(W[t]) + acc
    return acc


def transposed(i, x, W, V, R):
    acc = tw.zeros(i, W.shape[2])
    for t in range(4):
        acc += x(t) @ tw.load_tile(V[t]).T
    return acc


def onto_a_tile(i, x, W, V, R):
    acc = tw.load_tile(R[i, :]).to(tw.fp32)
    for t in range(4):
        acc += x(t) @ tw.load_tile(W[t])
    return acc


def onto_a_row(i, x, W, V, R):
    acc = tw.load_tile(R[2, :])
    for t in range(4):
        acc = acc + x(t) @ tw.load_tile(W[t])
    return acc


def one_operand_stays(i, x, W, V, R):
    same = tw.load_tile(W[1])
    acc = tw.zeros(i, W.shape[2])
    for t in range(4):
        acc += x(2 * t) @ same
    return acc


def two_digits(i, x, W, V, R):
    acc = tw.zeros(i, W.shape[2])
    for t in range(2):
        for u in range(2):
            acc += x(3 * t + u) @ tw.load_tile(W[2 * t + u])
    return acc


LINES = (
    plain,
    without_zeros,
    transposed,
    onto_a_tile,
    onto_a_row,
    one_operand_stays,
    two_digits,
)


@pytest.mark.parametrize("spelling", LINES)
def test_a_line_of_sums_has_the_bits_of_its_loop_and_is_one_part(spelling, seed):
    counts = [4] if spelling is not two_digits else [2, 2]
    program = accumulate(check(written(spelling).trace(dtype=tw.bf16, **SIZES)))
    loops = [each for each in walk(program.nodes) if isinstance(each, Loop) and not each.blocks]
    assert [each.extent for each in loops] == counts
    problem = Problem(written(spelling), named["small"], SIZES, tw.bf16, None, {})
    rng = np.random.default_rng(seed)
    given = {
        each.name: rng.normal(size=each.shape).astype(each.format.dtype) for each in problem.inputs
    }
    job = Job(problem, backend="emulator", inputs=given)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    assert outcome.report["parts"] == 1
    # One chain of additions over all terms, which starts from zeros.
    x, w, v, r = (each.astype(np.float32) for each in given.values())
    acc = np.zeros((10, 5), np.float32)
    for t in range(4):
        step = {two_digits: 3 * (t // 2) + t % 2, one_operand_stays: 2 * t}.get(spelling, t)
        taken = {transposed: v[t].T, one_operand_stays: w[1]}.get(spelling, w[t])
        for k in range(8):
            acc += x[step : step + 10, k : k + 1] * taken[k]
    acc += {onto_a_tile: r, onto_a_row: r[2]}.get(spelling, np.float32(0))
    np.testing.assert_array_equal(outcome.outputs["Y"], acc.astype(tw.bf16.dtype))


def uneven(i, x, W, V, R):
    acc = x(0) @ tw.load_tile(W[0])
    for t in (1, 3):
        acc += x(t) @ tw.load_tile(W[t])
    return acc


def backwards(i, x, W, V, R):
    acc = tw.zeros(i, W.shape[2])
    for t in range(4):
        acc += x(t) @ tw.load_tile(W[3 - t])
    return acc


def two_weights(i, x, W, V, R):
    return x(0) @ tw.load_tile(W[0]) + x(1) @ tw.load_tile(V[1]).T


def computed(i, x, W, V, R):
    def positive(t):
        return tw.maximum(x(t), 0.0).to(tw.bf16)

    return positive(0) @ tw.load_tile(W[0]) + positive(1) @ tw.load_tile(W[1])


def taken_between(i, x, W, V, R):
    acc = x(0) @ tw.load_tile(W[0]) + x(1) @ tw.load_tile(W[1])
    return tw.maximum(acc, 0.0) + acc


def subtracted(i, x, W, V, R):
    return x(0) @ tw.load_tile(W[0]) - x(1) @ tw.load_tile(W[1])


@pytest.mark.parametrize("spelling", [uneven, backwards, two_weights, computed, subtracted])
def test_other_sums_stay_as_they_are_written(spelling):
    program = accumulate(check(written(spelling).trace(dtype=tw.bf16, **SIZES)))
    assert [
        each for each in walk(program.nodes) if isinstance(each, Loop) and not each.blocks
    ] == []


def test_a_sum_that_is_taken_twice_is_one_loop():
    program = accumulate(check(written(taken_between).trace(dtype=tw.bf16, **SIZES)))
    loops = [each for each in walk(program.nodes) if isinstance(each, Loop) and not each.blocks]
    assert [each.extent for each in loops] == [2]


def test_a_tensor_that_is_updated_in_place_is_loaded_where_it_is():
    @tw.kernel("X[M, C], W[T, C, C] -> X[M, C]")
    def updated(X, W):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, :])
            acc = x @ tw.load_tile(W[0]) + x @ tw.load_tile(W[1])
            tw.store_tile(X[i, :], tw.maximum(acc, 0.0))

    program = accumulate(check(updated.trace(dtype=tw.bf16, T=4, C=8, M=10)))
    assert [each.mode for each in walk(program.nodes) if isinstance(each, Loop)] == ["metapipe"]
    x, w = np.ones((10, 8), tw.bf16.dtype), np.ones((2, 8, 8), tw.bf16.dtype)
    assert updated.run(x, w, config="small", backend="emulator").verified


def test_rows_by_their_numbers_are_no_matrices():
    @tw.kernel("X[T, C], W[T, C, D] -> Y[1, D]")
    def rows(X, W, Y):
        acc = tw.zeros(1, W.shape[2])
        for t in range(X.shape[0]):
            acc += tw.load_tile(X[t]) @ tw.load_tile(W[t])
        tw.store_tile(Y, acc)

    program = accumulate(check(rows.trace(dtype=tw.bf16, T=3, C=8, D=5)))
    assert not any(isinstance(each, Loop) for each in walk(program.nodes))


@pytest.mark.parametrize("points", [range, tw.each], ids=["range", "each"])
@pytest.mark.parametrize("turned", [(0, 1), (1, 0), (0, 0)])
def test_a_tile_may_be_both_operands(points, turned, seed):
    """Joined along one axis, or along each."""

    @tw.kernel("X[T, C, C] -> Y[C, C]")
    def squares(X, Y):
        acc = tw.zeros(X.shape[1], X.shape[1])
        for t in points(X.shape[0]):
            x = tw.load_tile(X[t])
            a, b = (x.T if each else x for each in turned)
            acc += a @ b
        tw.store_tile(Y, acc)

    x = np.random.default_rng(seed).normal(size=(3, 8, 8)).astype(tw.bf16.dtype)
    found = squares.run(x, config="small", backend="emulator")
    assert found.verified, found.problems


def test_sums_that_a_loop_over_blocks_carries_go_on_as_they_are_written():
    @tw.kernel("X[P, C], W[T, C, D] -> Y[M, D]")
    def blocks(X, W, Y):
        acc = tw.zeros(Y.shape[0], W.shape[2])
        for c in tw.metapipe(X.shape[1]):
            for t in range(2):
                acc += tw.load_tile(X[t : t + 10, c]) @ tw.load_tile(W[t, c, :])
        tw.store_tile(Y, acc)

    program = accumulate(check(blocks.trace(dtype=tw.bf16, **SIZES)))
    assert [each.mode for each in walk(program.nodes) if isinstance(each, Loop)] == ["metapipe"]


def test_a_loop_over_points_may_take_a_tile_that_is_loaded_before_it(seed):
    @tw.kernel("X[M, C], W[T, C, D] -> Y[M, D]")
    def outside(X, W, Y):
        for i in tw.metapipe(Y.shape[0]):
            x = tw.load_tile(X[i, :])
            acc = tw.zeros(i, W.shape[2])
            for t in tw.each(W.shape[0]):
                acc += x @ tw.load_tile(W[t])
            tw.store_tile(Y[i, :], acc)

    sizes = {"M": 10, "C": 8, "T": 4, "D": 5}
    problem = Problem(outside, named["tiny"], sizes, tw.bf16, None, {})
    job = Job(problem, backend="emulator", seed=seed)
    outcome = run(job, *compile_job(job))
    assert outcome.report["verified"], outcome.problems
    assert outcome.report["parts"] == 1
