"""Loops that carry tiles which are no sums of products: one block, copies, or launches."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.parts.carried_loops import without_carried_loops
from tests.sw.parts.random_carries import draw_carries
from tests.sw.verified_kernels import lean, verified


@tw.kernel("X[T, N], W[T, N] -> Y[T, N], L[N]: fp32")
def scan(X, W, Y, L):
    T, N = X.shape
    h = tw.zeros(1, N)
    for t in tw.each(T):
        h = h * tw.load_tile(W[t]) + tw.load_tile(X[t])
        tw.store_tile(Y[t], h)
    tw.store_tile(L, h)


@tw.kernel("X[B, T, N], k[N] -> Y[B, T, N]")
def second_axis(X, k, Y):
    """Sequences as rows: the loop's index is the second one."""
    decay = tw.load_tile(k)
    h = tw.load_tile(X[:, 0])
    for t in tw.each(X.shape[1]):
        h = h * decay + tw.load_tile(X[:, t])
        tw.store_tile(Y[:, t], h)


@tw.kernel("X[B, T, N], k[N] -> Y[B, T, N]")
def in_points(X, k, Y):
    """A loop over few points around one over many."""
    B, T, N = X.shape
    decay = tw.load_tile(k)
    for b in tw.each(B):
        h = tw.zeros(1, N)
        for t in tw.each(T):
            h = tw.maximum(h * decay, tw.load_tile(X[b, t]))
            tw.store_tile(Y[b, t], h)


@tw.kernel("X[T, B, D], W[D, H], U[H, H], b[H] -> Y[T, B, H]: bf16")
def recurrent(X, W, U, b, Y):
    w, u, bias = tw.load_tile(W), tw.load_tile(U), tw.load_tile(b)
    h = tw.zeros(X.shape[1], U.shape[0], tw.bf16)
    for t in tw.each(X.shape[0]):
        h = tw.tanh(tw.load_tile(X[t]) @ w + h @ u + bias).to(tw.bf16)
        tw.store_tile(Y[t], h)


@tw.kernel("X[L, R, M, N] -> Y[M, N]")
def in_layers(X, Y):
    """A short loop, whose last value is that of a layer."""
    x = tw.zeros(*Y.shape)
    for n in tw.repeat(X.shape[0]):
        for r in tw.each(X.shape[1]):
            x = tw.maximum(x * 0.5, tw.load_tile(X[n, r]))
    tw.store_tile(Y, x)


@tw.kernel("X[B, M, N] -> Y[M, N]")
def greatest(X, Y):
    """A loop over points inside one over blocks."""
    B, M, N = X.shape
    for i in tw.metapipe(M):
        y = tw.full(i, N, -tw.inf)
        for b in tw.each(B):
            y = tw.maximum(y, tw.load_tile(X[b, i, :]))
        tw.store_tile(Y[i, :], y)


@tw.kernel("X[M, N] -> Y[M, N], S[1, N]: fp32")
def softmax_in_blocks(X, Y, S):
    """Two loops over blocks of columns, and one over blocks of rows."""
    M, N = X.shape
    for i in tw.metapipe(M):
        m, r = tw.full(i, 1, -tw.inf), tw.zeros(i, 1)
        for j in tw.metapipe(N):
            x = tw.load_tile(X[i, j])
            top = tw.maximum(m, tw.row_max(x))
            r = r * tw.exp(m - top) + tw.row_sum(tw.exp(x - top))
            m = top
        for j in tw.metapipe(N):
            tw.store_tile(Y[i, j], tw.exp(tw.load_tile(X[i, j]) - m) / r)
    s = tw.zeros(1, N)
    for i in tw.metapipe(M):
        s += tw.col_sum(tw.load_tile(X[i, :]))
    tw.store_tile(S, s)


@tw.kernel("X[T, B, N] -> Y[T, B, N]: fp32")
def corrected(X, Y):
    """A mean with a correction by the number of the step."""
    m = tw.zeros(X.shape[1], X.shape[2])
    for t in tw.each(X.shape[0]):
        m = 0.9 * m + 0.1 * tw.load_tile(X[t])
        number = (tw.row_index(1) + (2 * t + 3)).to(tw.fp32)
        tw.store_tile(Y[t], m / (1.0 - tw.exp(number * -0.1)))


@tw.kernel("X[T, B, N], Z[B, T, N] -> Y[T, B, N], H[B, T, N]")
def backwards(X, Z, Y, H):
    """From the last step to the first, on both axes and in element math."""
    last = X.shape[0] - 1
    h = tw.zeros(*X.shape[1:])
    for t in tw.each(X.shape[0]):
        h = h * 0.5 + tw.load_tile(X[last - t]) * tw.load_tile(Z[:, last - t])
        tw.store_tile(Y[last - t], h)
        tw.store_tile(H[:, last - t], tw.where(tw.row_index(1) + (last - t) < 5, h, 0.0))


@tw.kernel("X[M, N], W[L, N, N], g[L, N] -> Y[M, N]")
def beside_a_local_tensor(X, W, g, Y):
    """Layers of several parts each, behind a local tensor in memory."""
    half = tw.local(*X.shape, dtype=tw.bf16, spill=True)
    x = tw.load_tile(X)
    tw.store_tile(half, x * 0.5)
    for n in tw.repeat(W.shape[0]):
        s = x @ tw.load_tile(W[n])
        e = tw.exp(s - tw.row_max(s))
        x = (e / tw.row_sum(e) * tw.load_tile(g[n]) + tw.load_tile(half)).to(tw.bf16)
    tw.store_tile(Y, x)


def attend(q, K, V, changed):
    """Softmax over blocks of keys, of scores that a function of them and their block changes."""
    m, r, o = tw.full(q.rows, 1, -tw.inf), tw.zeros(q.rows, 1), tw.zeros(q.rows, V.shape[1])
    for j in tw.metapipe(K.shape[0]):
        s = changed(q @ tw.load_tile(K[j, :]).T * 0.25, j)
        top = tw.maximum(m, tw.row_max(s))
        p, fade = tw.exp(s - top), tw.exp(m - top)
        r = r * fade + tw.row_sum(p)
        o = o * fade + p.to(V.dtype) @ tw.load_tile(V[j, :])
        m = top
    return o / r


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> Y[M, D]")
def capped(Q, K, V, Y):
    """A softmax over blocks that is not fused, because of its soft cap."""
    for i in tw.metapipe(Q.shape[0]):
        q = tw.load_tile(Q[i, :])
        tw.store_tile(Y[i, :], attend(q, K, V, lambda s, j: 20.0 * tw.tanh(s * 0.05)))


@tw.kernel("Q[M, D], K[S, D], V[S, D], n[1, 1]: int32 -> Y[M, D]: fp32")
def padded(Q, K, V, n, Y):
    """A softmax over blocks under a mask, and with a result, that its units do not have."""
    length = tw.load_tile(n)
    for i in tw.metapipe(Q.shape[0]):
        q = tw.load_tile(Q[i, :])
        hidden = attend(q, K, V, lambda s, j: tw.where(tw.col_index(j) < length, s, -tw.inf))
        tw.store_tile(Y[i, :], hidden)


@tw.kernel("X[T, B, N] -> Y[T, B, N], Z[B, N]")
def filtered(X, Y, Z):
    """A recursive filter of second order: inputs and outputs of two steps before."""
    x1 = x2 = y1 = y2 = tw.zeros(X.shape[1], X.shape[2], tw.fp32)
    for t in tw.each(X.shape[0]):
        x = tw.load_tile(X[t]).to(tw.fp32)
        y = 0.25 * (x + 2.0 * x1 + x2) + 0.5 * y1 - 0.25 * y2
        tw.store_tile(Y[t], y)
        x1, x2, y1, y2 = x, x1, y, y1
    tw.store_tile(Z, y2)


def column_sums(size):
    @tw.kernel("X[M, N] -> S[1, N]: fp32")
    def sums(X, S):
        s = tw.zeros(1, X.shape[1])
        for i in tw.metapipe(X.shape[0], size=size):
            s += tw.col_sum(tw.load_tile(X[i, :]))
        tw.store_tile(S, s)

    return sums


CASES = (
    (scan, {"T": 12, "N": 24}),
    (second_axis, {"B": 5, "T": 10, "N": 16}),
    (in_points, {"B": 2, "T": 8, "N": 24}),
    (recurrent, {"T": 9, "B": 6, "D": 16, "H": 16}),
    (corrected, {"T": 11, "B": 3, "N": 24}),
    (backwards, {"T": 11, "B": 3, "N": 24}),
    (beside_a_local_tensor, {"M": 9, "N": 16, "L": 3}),
    (filtered, {"T": 11, "B": 5, "N": 24}),
    (filtered, {"T": 4, "B": 5, "N": 24}),
    (in_layers, {"L": 4, "R": 3, "M": 6, "N": 16}),
    (greatest, {"B": 11, "M": 20, "N": 24}),
    (greatest, {"B": 3, "M": 20, "N": 24}),
    (softmax_in_blocks, {"M": 21, "N": 45}),
    (capped, {"M": 20, "S": 37, "D": 16}),
    (padded, {"M": 20, "S": 37, "D": 16}),
    (column_sums(16), {"M": 50, "N": 24}),
    (column_sums(2), {"M": 21, "N": 24}),
    (in_points, {"B": 9, "T": 9, "N": 8}),
)


@pytest.mark.few(3)
@pytest.mark.parametrize(("kernel", "sizes"), CASES, ids=lambda each: getattr(each, "name", None))
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_what_is_carried_has_golden_s_bits(kernel, sizes, config, seed):
    verified(kernel, sizes, config, seed, backend="emulator")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (scan, {"T": 10, "N": 16}),
        (second_axis, {"B": 2, "T": 9, "N": 16}),
        (recurrent, {"T": 3, "B": 2, "D": 8, "H": 8}),
        (filtered, {"T": 4, "B": 2, "N": 16}),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_what_is_carried_on_the_rtl(kernel, sizes, seed, heavy):
    verified(kernel, sizes, "tiny", seed)


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_random_loops_have_golden_s_bits(config, seed, draws):
    rng = random.Random(seed)
    for number in range(draws(2, 20)):
        text, kernel, sizes = draw_carries(rng, f"{config}-{number}")
        job = Job(
            Problem(kernel, named[config], sizes, tw.bf16, None, {}),
            seed=number,
            backend="emulator",
        )
        outcome = run(job, *compile_job(job))
        assert outcome.report["verified"], (outcome.problems, sizes, text)


def loops(program):
    return [each for each in walk(program.nodes) if isinstance(each, ir.Loop)]


def test_blocks_become_one_points_copies_or_launches():
    program = lean(softmax_in_blocks, M=21, N=45)
    assert not any(each.carries for each in loops(without_carried_loops(program, {})))
    (loop,) = loops(without_carried_loops(lean(scan, T=300, N=8), {}))
    assert loop.mode == "repeat" and loop.carries
    assert not loops(without_carried_loops(lean(scan, T=8, N=8), {}))
    # The blocks of rows are one, because launches stand outside all loops.
    (loop,) = loops(without_carried_loops(lean(greatest, B=9, M=20, N=24), {}))
    assert loop.mode == "repeat"
    # Sums of products stay as they are.
    program = lean(tw.kernel("A[M, K], B[K, N] -> C[M, N]")(tiled_product), M=8, K=8, N=8)
    assert without_carried_loops(program, {}) is program


def tiled_product(A, B, C):
    (M, K), N = A.shape, B.shape[1]
    for i in tw.metapipe(M):
        c = tw.zeros(i, N)
        for k in tw.metapipe(K):
            c += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, :])
        tw.store_tile(C[i, :], c)


def test_blocks_of_a_given_size_are_copies_and_their_bits_golden_s(seed):
    """A sum of ones beside 2^24: its blocks decide what is lost."""
    x = np.ones((32, 16), np.float32)
    x[0] = 2.0**24
    by_size = {}
    for size in (8, 32):
        found = column_sums(size).run(x, config="tiny", backend="emulator")
        assert found.verified, found.problems
        by_size[size] = float(found.S[0, 0])
    assert by_size == {8: 2.0**24 + 24, 32: 2.0**24}


def test_a_softmax_that_is_not_fused_says_why():
    compiled = Problem(capped, named["small"], {"M": 20, "S": 37, "D": 16}, tw.bf16).compile()
    (note,) = (each for each in compiled.notes if "not fused" in each)
    assert note.startswith("a softmax over blocks is not fused: ")


@pytest.mark.slow
def test_a_mask_that_its_units_do_not_have_keeps_the_printed_form(seed):
    rng = np.random.default_rng(seed)
    q, k, v = (rng.normal(size=(n, 16)).astype(tw.bf16.dtype) for n in (12, 40, 40))
    length = np.full((1, 1), 29, np.int32)
    found = padded.run(q, k, v, length, config="small", backend="emulator")
    assert found.verified, found.problems
    wide, keys, values = (each.astype(np.float64) for each in (q, k[:29], v[:29]))
    powers = np.exp(wide @ keys.T / 4)
    assert np.allclose(found.Y, powers @ values / powers.sum(1, keepdims=True), atol=0.02)
    sizes = {"M": 12, "S": 40, "D": 16}
    compiled = Problem(padded, named["small"], sizes, tw.bf16).compile()
    (note,) = (each for each in compiled.notes if "not fused" in each)
    assert "compare numbers of keys" in note or "bf16" in note


@tw.kernel("X[M, M] -> Y[M, 1]: fp32")
def triangle(X, Y):
    M = X.shape[0]
    for i in tw.each(M):
        s = tw.zeros(1, 1)
        for j in tw.metapipe(M, until=i + 1):
            s += tw.row_sum(tw.load_tile(X[i, j]))
        tw.store_tile(Y[i, :], s)


@pytest.mark.parametrize(
    ("kernel", "sizes", "message"),
    [
        (triangle, {"M": 9}, r"`j` carries a tile, and must not end by another loop's index"),
    ],
    ids=["triangle"],
)
def test_what_is_not_served_is_refused_at_its_line(kernel, sizes, message):
    with pytest.raises(tw.ProgramError, match=message) as found:
        kernel.compile("small", dtype=tw.bf16, **sizes)
    assert found.value.where.startswith("test_carried_loops.py:")


@tw.kernel("X[B, H, W, C] -> Y[B, C]")
def mean_over_places(X, Y):
    B, H, W, C = X.shape
    for b in tw.each(B):
        total = tw.zeros(1, C)
        for h in tw.each(H):
            total += tw.col_sum(tw.load_tile(X[b, h, :, :]))
        tw.store_tile(Y[b, :], total * (1 / (H * W)))


@pytest.mark.parametrize("chip", ["tiny", "small"])
def test_a_loop_that_carries_inside_one_over_points(chip):
    """Each section stores the row of one point, a part of the tensor."""
    x = np.random.default_rng(3).normal(size=(2, 3, 5, 8)).astype(np.float32)
    found = mean_over_places.run(x, config=chip, backend="emulator")
    assert found.verified, found.problems
    assert np.abs(found.Y - x.mean(axis=(1, 2))).max() < 1e-3
