"""Few long rows: statistics and element math in parts of their own, and bf16 as fp32."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.job import Problem
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax

LONG = {"M": 1, "N": 4096}


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def norm_of_casts(X, g, Y):
    """As it is often written: in fp32 from the first operation on."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :]).to(tw.fp32)
        y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5)
        tw.store_tile(Y[i, :], y * tw.load_tile(g).to(tw.fp32))


@tw.kernel("X[M, N] -> Y[M, N]: fp32, Z[M, N]: fp32, S[M, 1]: fp32")
def choices_of_casts(X, Y, Z, S):
    """Operations that pass the bits of a NaN on."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :]).to(tw.fp32)
        tw.store_tile(Y[i, :], tw.where(x > 0.5, x, -x))
        tw.store_tile(Z[i, :], tw.maximum(abs(x), 0.25))
        tw.store_tile(S[i, :], tw.row_max(x))


def compiled(kernel, chip, **sizes):
    return Problem(kernel, named[chip], sizes, bf16).compile()


@pytest.mark.parametrize("kernel", [softmax, rms_norm], ids=lambda each: each.name)
def test_element_math_of_few_rows_uses_all_pcus(kernel):
    """One row of the statistics takes one PCU, and what is made of it as many as there are."""
    statistics, elements = compiled(kernel, "large", **LONG).parts
    assert statistics.pipeline.summary.startswith("1 chains of 1 PCUs")
    assert not elements.pipeline.summary.startswith("1 chains")


def test_rows_that_a_buffer_holds_are_loaded_once():
    assert len(compiled(softmax, "large", M=16, N=300).parts) == 1


def test_many_rows_are_one_part():
    assert len(compiled(softmax, "small", M=512, N=4096).parts) == 1


def test_casts_before_element_math_cost_nothing():
    written, bare = compiled(norm_of_casts, "small", **LONG), compiled(rms_norm, "small", **LONG)
    assert written.predicted_cycles == bare.predicted_cycles <= 20_000


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", [softmax, norm_of_casts], ids=lambda each: each.name)
def test_few_long_rows_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    m, n = int(draw.integers(1, 20)), int(draw.integers(2000, 3000))
    values = [draw.normal(size=(m, n)), draw.normal(size=n)][: len(kernel.signature.inputs)]
    values = [each.astype(bf16.dtype) for each in values]
    found = kernel.run(*values, config=chip, backend="emulator")
    assert found.verified, found.problems


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
def test_any_bits_pass_without_the_casts(chip, seed):
    draw = np.random.default_rng(seed)
    shape = tuple(draw.integers(1, 80, 2))
    x = draw.integers(0, 1 << 16, shape).astype(np.uint16).view(bf16.dtype)
    found = choices_of_casts.run(x, config=chip, backend="emulator")
    assert found.verified, found.problems
