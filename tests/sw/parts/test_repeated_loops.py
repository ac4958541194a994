"""Loops over points around one another: iterations of one launch where they go on in memory."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.operands import random_operand
from sw.compiler import compile_kernel


@tw.kernel("X[B, H, M, N] -> Y[B, H, M, N]")
def heads_of_a_batch(X, Y):
    for b in tw.each(X.shape[0]):
        for h in tw.each(X.shape[1]):
            x = tw.load_tile(X[b, h])
            tw.store_tile(Y[b, h], x * tw.rsqrt(tw.col_sum(x * x) + 1.0))


@tw.kernel("X[B, H, M, N], W[H, N, N] -> Y[B, H, M, N]")
def weights_of_a_head(X, W, Y):
    for b in tw.each(X.shape[0]):
        for h in tw.each(X.shape[1]):
            tw.store_tile(Y[b, h], tw.load_tile(X[b, h]) @ tw.load_tile(W[h]))


@tw.kernel("X[B, H, M, N] -> Y[H, B, M, N]")
def exchanged(X, Y):
    for b in tw.each(X.shape[0]):
        for h in tw.each(X.shape[1]):
            x = tw.load_tile(X[b, h])
            tw.store_tile(Y[h, b], x - tw.col_max(x))


#: Kernel and the iterations of its launches, for 3 heads of a batch of 2.
KERNELS = {
    # Two beside one another.
    heads_of_a_batch: [3],
    # The weights begin anew.
    weights_of_a_head: [3, 3],
    exchanged: [3, 3],
}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_loops_that_go_on_where_one_inside_ends_are_one_launch(kernel):
    sizes = {"B": 2, "H": 3, "M": 5, "N": 24}
    compiled = compile_kernel(kernel, named["small"], dims=sizes, dtype=bf16)
    (part,) = compiled.parts
    assert [each.repeat for each in part.part.launches] == KERNELS[kernel]


@pytest.mark.few(2)
@pytest.mark.parametrize("config", ["small", "tiny"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_they_equal_golden_on_random_shapes(kernel, config, seed):
    rng = random.Random(seed)
    b, h, m, n = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 20), 8 * rng.randint(1, 6)
    draw = np.random.default_rng(seed)
    arrays = [random_operand(draw, (b, h, m, n), bf16)]
    if kernel is weights_of_a_head:
        arrays.append(random_operand(draw, (h, n, n), bf16))
    result = kernel.run(*arrays, config=config, backend="emulator")
    assert result.verified, ((b, h, m, n), result.problems)


@pytest.mark.slow
def test_rtl_runs_the_heads_of_a_batch(heavy, seed):
    draw = np.random.default_rng(seed)
    arrays = [random_operand(draw, (2, 3, 7, 40), bf16)]
    result = heads_of_a_batch.run(*arrays, config="small", backend="rtl", seed=seed % 1000)
    assert result.verified, result.problems
