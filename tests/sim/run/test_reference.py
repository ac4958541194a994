"""Golden against the author's float64 answer: the bound is that of the arithmetic, and it bites."""

import numpy as np
import pytest

import tilewright as tw
from hw.configs import named
from hw.numeric import reference
from hw.numeric.formats import bf16, fp32, int8, int32
from sim.golden import golden
from sim.operands import random_inputs
from sim.run.problem import Problem
from sim.run.reference import compare_with_reference
from sw.kernels.matmul import matmul

FORMATS = [(bf16, bf16), (bf16, fp32), (int8, int32)]


def made(seed, fmt, out, *, wild=False, m=9, k=40, n=13):
    dims = {"M": m, "K": k, "N": n}
    problem = Problem(matmul, named["tiny"], dims, fmt, out)
    inputs = random_inputs(problem.inputs, seed, wild=wild)
    return problem, inputs, golden(problem.golden_program, inputs)


def compare(problem, inputs, answers):
    return compare_with_reference(problem.kernel, problem.program, inputs, answers, problem.outputs)


@pytest.mark.parametrize(("fmt", "out"), FORMATS)
@pytest.mark.parametrize("wild", [False, True])
def test_the_bound_of_a_product_is_that_of_the_arithmetic(fmt, out, wild, seed):
    problem, inputs, answers = made(seed, fmt, out, wild=wild)
    errors = compare(problem, inputs, answers)
    bound = reference.error_bound(inputs["A"], inputs["B"], out=out)
    finite = bound[np.isfinite(bound)]
    assert errors.within and errors.products == 9 * 40 * 13
    assert errors.bound == pytest.approx(finite.max(), rel=1e-9)
    assert errors.absolute <= errors.bound


@pytest.mark.parametrize(("fmt", "out"), FORMATS)
def test_one_wrong_element_leaves_the_bound(fmt, out, seed):
    problem, inputs, answers = made(seed, fmt, out)
    bound = reference.error_bound(inputs["A"], inputs["B"], out=out)
    row, column = np.unravel_index(seed % answers["C"].size, answers["C"].shape)
    wrong = answers["C"].copy()
    wide = np.float64(wrong[row, column]) + 2.5 * bound[row, column] + 1
    wrong[row, column] = out.dtype.type(wide)
    assert not compare(problem, inputs, {"C": wrong}).within


def test_a_kernel_that_is_more_than_products_has_no_bound_and_is_not_within(seed):
    @tw.kernel("X[M, N] -> Y[M, N]")
    def doubled(X, Y):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, :])
            tw.store_tile(Y[i, :], x * 2)

    @doubled.reference
    def _(X):
        return X * 2

    problem = Problem(doubled, named["tiny"], {"M": 4, "N": 5}, bf16)
    inputs = random_inputs(problem.inputs, seed, wild=False)
    errors = compare(problem, inputs, golden(problem.golden_program, inputs))
    assert errors.bound is None and errors.products is None and not errors.within
    assert errors.absolute is not None


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
    assert errors.within and 0 < errors.absolute < errors.bound and errors.products is None
    magnitude = np.abs(inputs["A"].astype(float)) @ np.abs(inputs["B"].astype(float))
    assert errors.bound < 41 * 2**-23 * (magnitude + np.abs(inputs["D"].astype(float))).max()
