"""Values of which several results are made: stored where computing them again takes longer."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.job import Problem
from sw.ir import nodes as ir
from sw.ir.rewrite import walk


@tw.kernel("x[N, 1], y[N, 1], xt[1, N], yt[1, N], m[1, N] -> ax[N, 1]: fp32, ay[N, 1]: fp32")
def forces(x, y, xt, yt, m, ax, ay, soft=0.1):
    """Sums over all bodies, both with the inverse cubes of their distances."""
    for i in tw.metapipe(x.shape[0]):
        dx, dy = (tw.load_tile(each) - tw.load_tile(own[i, :]) for each, own in ((xt, x), (yt, y)))
        inverse = tw.rsqrt(dx * dx + dy * dy + soft)
        weight = tw.load_tile(m) * inverse * inverse * inverse
        tw.store_tile(ax[i, :], tw.row_sum(weight * dx))
        tw.store_tile(ay[i, :], tw.row_sum(weight * dy))


@tw.kernel("X[M, N] -> P[M, N], E[M, 1]: fp32, S[M, 1]: fp32")
def entropies(X, P, E, S):
    """A softmax, entropies of its rows, and sums of squares."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        p = e / tw.row_sum(e)
        tw.store_tile(P[i, :], p)
        tw.store_tile(E[i, :], -tw.row_sum(p * tw.log(p + 1e-9)))
        tw.store_tile(S[i, :], tw.row_sum(p * p))


def operations(compiled, kind):
    """How often the parts of a kernel have an element operation."""
    nodes = (node for each in compiled.parts for node in walk(each.part.program.nodes))
    return sum(isinstance(each, ir.Map) and each.op == kind for each in nodes)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kernel, sizes, kind",
    [(forces, {"N": 300}, "rsqrt"), (entropies, {"M": 128, "N": 512}, "exp")],
    ids=["forces", "entropies"],
)
def test_a_shared_value_is_computed_once(kernel, sizes, kind):
    compiled = Problem(kernel, named["large"], sizes, bf16).compile()
    assert operations(compiled, kind) == 1


def test_a_value_of_few_operations_is_computed_again():
    """A sum costs one phase on each PCU, less than its passage through memory."""

    @tw.kernel("X[M, N], Y[M, N] -> A[M, N], B[M, N], C[M, N]")
    def twice(X, Y, A, B, C):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, :]) + tw.load_tile(Y[i, :])
            tw.store_tile(A[i, :], tw.exp(x))
            tw.store_tile(B[i, :], tw.sigmoid(x))
            tw.store_tile(C[i, :], tw.log(abs(x) + 1.0))

    compiled = Problem(twice, named["small"], {"M": 128, "N": 512}, bf16).compile()
    assert operations(compiled, "add") - 1 == len(compiled.parts) > 1


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", [forces, entropies], ids=lambda each: each.name)
def test_shared_values_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    n, m = (int(each) for each in draw.integers(1, 80, 2))
    shapes = [(n, 1)] * 2 + [(1, n)] * 3 if kernel is forces else [(m, n)]
    values = [draw.normal(size=each).astype(bf16.dtype) for each in shapes]
    found = kernel.run(*values, config=chip, backend="emulator")
    assert found.verified, found.problems
