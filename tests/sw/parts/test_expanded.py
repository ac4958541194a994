"""Functions and choices written out, where a chip has too few PCUs for their lane programs."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.job import Problem


@tw.kernel("X[M, N] -> Y[M, N]")
def two_greatest(X, Y):
    """Softmax of the two greatest numbers of each row, of others 0."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        first = tw.row_max(x)
        second = tw.row_max(tw.where(x == first, -tw.inf, x))
        e = tw.where(x >= second, tw.exp(x - first), 0.0)
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("A[M, N], B[M, N], C[M, N], D[M, N] -> Y[M, N]")
def chosen(A, B, C, D, Y):
    for i in tw.metapipe(A.shape[0]):
        a, b, c, d = (tw.load_tile(each[i, :]) for each in (A, B, C, D))
        tw.store_tile(Y[i, :], tw.where(a <= b, tw.gelu(c), tw.silu(d)))


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40]


CASES = [(two_greatest, "tiny"), (two_greatest, "small"), (two_greatest, "large")]
CASES += [(chosen, "large"), (chosen, "small"), (chosen, "tiny")]


@pytest.mark.few(1)
@pytest.mark.parametrize(("kernel", "chip"), CASES)
def test_choices_of_tiles_are_those_of_golden(kernel, chip, seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 50, 2))
    count = len(kernel.signature.inputs)
    arrays = [rng.integers(-3, 4, shape).astype(tw.bf16.dtype) for _ in range(count)]
    if kernel is chosen:
        for each in arrays:
            each.flat[: len(SPECIAL) // 2] = rng.permutation(SPECIAL)[: len(SPECIAL) // 2]
    found = kernel.run(*arrays, config=chip, backend="emulator")
    assert found.verified, found.problems


def test_a_choice_by_an_order_takes_two_selections():
    """What is not greater is a maximum that equals the other one: no third tile is fetched."""
    graph = Problem(chosen, named["large"], {"M": 64, "N": 64}, tw.bf16).compile().ir("graph")
    lanes = [line for line in graph.splitlines() if line.startswith("pcu0_0_")]
    assert len(lanes) == 11
    assert "maximum(x, aux)" in lanes[4] and "1 if x == aux else 0" in lanes[5]
