"""Golden against the author's float64 answer: the bound is that of the arithmetic, and it bites."""

import re

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric import reference
from hw.numeric.formats import bf16, fp32, int8, int32
from sim.golden import golden
from sim.operands import random_inputs
from sim.run.float64_error import Errors, compare_with_reference
from sim.run.job import Problem
from sw.kernels.matmul import matmul

FORMATS = [(bf16, bf16), (bf16, fp32), (int8, int32)]


def made(seed, fmt, out, *, wild=False, m=9, k=40, n=13):
    dims = {"M": m, "K": k, "N": n}
    problem = Problem(matmul, named["tiny"], dims, fmt, out)
    inputs = random_inputs(problem.inputs, seed, wild=wild)
    return problem, inputs, golden(problem.golden_program, inputs)


def compare(problem, inputs, answers):
    program = problem.golden_program
    return compare_with_reference(problem.kernel, program, inputs, answers, problem.outputs)


@pytest.mark.parametrize(("fmt", "out"), FORMATS)
@pytest.mark.parametrize("wild", [False, True])
def test_the_bound_of_a_product_is_that_of_the_arithmetic(fmt, out, wild, seed):
    problem, inputs, answers = made(seed, fmt, out, wild=wild)
    errors = compare(problem, inputs, answers)
    bound = reference.error_bound(inputs["A"], inputs["B"], out=out)
    finite = bound[np.isfinite(bound)]
    assert errors.within
    if out == bf16:
        # The cast rounds the sum, which is less than its terms.
        assert errors.bound < finite.max() * (1 + 1e-9)
    else:
        assert errors.bound == pytest.approx(finite.max(), rel=1e-9)
    assert errors.absolute <= errors.bound and 0 <= errors.of_bound <= 1
    assert errors.absolute == 0 or 0 < errors.relative < 2**-7


@pytest.mark.parametrize(("fmt", "out"), FORMATS)
def test_one_wrong_element_leaves_the_bound(fmt, out, seed):
    problem, inputs, answers = made(seed, fmt, out)
    bound = reference.error_bound(inputs["A"], inputs["B"], out=out)
    row, column = np.unravel_index(seed % answers["C"].size, answers["C"].shape)
    wrong = answers["C"].copy()
    wide = np.float64(wrong[row, column]) + 2.5 * bound[row, column] + 1
    wrong[row, column] = out.dtype.type(wide)
    assert not compare(problem, inputs, {"C": wrong}).within


def doubled(answer):
    """Kernel of element math, with a reference."""

    @tw.kernel("X[M, N] -> Y[M, N]")
    def doubled(X, Y):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, :])
            tw.store_tile(Y[i, :], x * 2)

    doubled.reference(answer)
    return doubled


def small_run(kernel, seed, fmt=bf16, out=None, **dims):
    problem = Problem(kernel, named["tiny"], dims or {"M": 4, "N": 5}, fmt, out)
    inputs = random_inputs(problem.inputs, seed, wild=False)
    return problem, inputs, golden(problem.golden_program, inputs)


def test_element_math_is_judged_as_products_are(seed):
    errors = compare(*small_run(doubled(lambda X: X * 2), seed))
    assert errors.within and errors.bound > 0 and errors.of_bound == errors.absolute == 0
    wrong = compare(*small_run(doubled(lambda X: X * 4), seed))
    assert not wrong.within and wrong.relative == pytest.approx(0.5)
    assert re.fullmatch(r"Y\[\d, \d\] is \S+ and should be \S+, give or take \S+", wrong.worst)
    assert errors.worst == ""


def test_a_cast_before_a_product_widens_the_bound(seed):
    @tw.kernel("A[M, K]: fp32, B[K, N]: bf16 -> C[M, N]: fp32")
    def narrowed(A, B, C):
        for i in tw.metapipe(A.shape[0]):
            a = tw.load_tile(A[i, :]).to(tw.bf16)
            tw.store_tile(C[i, :], a @ tw.load_tile(B))

    narrowed.reference(lambda A, B: A @ B)
    problem, inputs, answers = small_run(narrowed, seed, M=4, K=9, N=5)
    errors = compare(problem, inputs, answers)
    sizes = [np.abs(inputs[name].astype(float)) for name in "AB"]
    assert errors.within and errors.absolute > 0
    assert errors.bound == pytest.approx((sizes[0] @ sizes[1]).max() * 2**-8, rel=1e-3)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda X: X[0], r"must give Y of shape \(4, 5\), not \(5,\)"),
        (lambda X: (X, X), r"must give Y of shape \(4, 5\), not \(4, 5\), \(4, 5\)"),
        (lambda X: np.full(X.shape, None), "must give numbers, not object"),
        (
            lambda X, Z: X,
            r"must take the inputs \(X\), and .* sizes by their names, not \(X, Z\)",
        ),
        (lambda: 1, r"must take the inputs \(X\), and options and sizes by their names, not \(\)"),
    ],
)
def test_a_reference_that_gives_no_outputs_is_named_with_its_line(answer, message, seed):
    with pytest.raises(tw.ProgramError, match=message) as caught:
        compare(*small_run(doubled(answer), seed))
    line = answer.__code__.co_firstlineno
    assert str(caught.value).startswith(f"test_reference.py:{line}: Reference of `doubled`")


def test_the_reference_is_called_once_and_on_the_inputs_alone(seed):
    """One that is wrong on ones, where terms were once counted, changes nothing."""
    calls = []

    @tw.kernel("A[M, K], B[K, N] -> C[M, N]")
    def product(A, B, C):
        for i in tw.metapipe(A.shape[0]):
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]) @ tw.load_tile(B))

    @product.reference
    def _(A, B):
        calls.append((A, B))
        return A @ B * (10 if (A == 1).all() else 1)

    problem, inputs, answers = small_run(product, seed, out=fp32, M=4, K=9, N=5)
    errors = compare(problem, inputs, answers)
    bound = reference.error_bound(inputs["A"], inputs["B"], out=fp32)
    assert errors.bound == pytest.approx(bound.max(), rel=1e-9) and errors.within
    ((a, b),) = calls
    assert (a == inputs["A"].astype(float)).all() and (b == inputs["B"].astype(float)).all()


def test_without_a_reference_nothing_is_judged(seed):
    @tw.kernel("X[M, N] -> Y[M, N]")
    def copied(X, Y):
        for i in tw.metapipe(X.shape[0]):
            tw.store_tile(Y[i, :], tw.load_tile(X[i, :]))

    assert compare(*small_run(copied, seed)) == Errors()


def test_a_sum_carried_over_blocks_has_the_bound_of_the_whole(seed):
    @tw.kernel("A[M, K], B[K, N], D[M, N] -> C[M, N]")
    def gemm(A, B, D, C):
        M, K = A.shape
        for i in tw.metapipe(M):
            acc = tw.load_tile(D[i, :]).to(tw.fp32)
            for k in tw.metapipe(K, 16):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, :])
            tw.store_tile(C[i, :], acc)

    @gemm.reference
    def _(A, B, D):
        return A @ B + D

    problem = Problem(gemm, named["tiny"], {"M": 6, "K": 40, "N": 5}, bf16, fp32)
    inputs = random_inputs(problem.inputs, seed, wild=False)
    errors = compare(problem, inputs, golden(problem.golden_program, inputs))
    assert errors.within and 0 < errors.absolute < errors.bound
    magnitude = np.abs(inputs["A"].astype(float)) @ np.abs(inputs["B"].astype(float))
    assert errors.bound < 41 * 2**-23 * (magnitude + np.abs(inputs["D"].astype(float))).max()
