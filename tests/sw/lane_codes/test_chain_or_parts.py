"""Chains of more programs than a chip has PCUs: one program of joined phases, or parts."""

import numpy as np
import pytest

import tilewright as tw
from tests.sw.stages.region_runs import compiled_of, side, verify


@tw.kernel("X[M, N], Z[M, N] -> Y[M, N]")
def gated(X, Z, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.gelu(tw.load_tile(X[i, :])) * tw.load_tile(Z[i, :]))


@tw.kernel("X[M, N], b[N] -> Y[M, N]")
def biased(X, b, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.gelu(tw.load_tile(X[i, :]) + tw.load_tile(b)))


@tw.kernel("X[M, N] -> Y[M, N]")
def polynomial(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        y = x * 0.1 + 0.2
        for number in range(3, 9):
            y = y * x + 0.1 * number
        tw.store_tile(Y[i, :], y)


#: Kernel, parts, cycles: with values of fp32 in memory the first two took 1.5 times as many, and
#: a polynomial that is cut behind its first phase 1.3 times.
CORPUS = [(gated, 1, 58_000), (biased, 1, 58_000), (polynomial, 2, 72_000)]


@pytest.mark.parametrize(("kernel", "parts", "most"), CORPUS)
def test_what_passes_between_parts_counts(kernel, parts, most):
    compiled = compiled_of(kernel, "tiny", (64, 616))
    assert len(compiled.parts) == parts
    assert compiled.predicted_cycles <= most


@pytest.mark.parametrize("kernel", [gated, biased, polynomial], ids=lambda each: each.name)
def test_they_equal_golden(kernel, seed):
    draw = np.random.default_rng(seed)
    verify(kernel, "tiny", (side(draw, 40), side(draw, 90)))
