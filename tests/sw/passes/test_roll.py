"""Stores that compute the same of other places become a loop over points, with the same bits."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16
from sim.golden import golden
from sim.operands import random_operand
from sim.run.job import Problem
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.passes import kernel_steps
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from sw.passes.piece_tensors import with_piece_tensors
from sw.passes.roll import roll
from sw.passes.simplify import simplify


def attend(q, k, v):
    s = q @ k.T * q.shape[1] ** -0.5
    e = tw.exp(s - tw.row_max(s))
    return (e.to(tw.bf16) @ v) / tw.row_sum(e)


@tw.kernel("Q[M, C], K[S, C], V[S, C] -> R[M, C]")
def heads(Q, K, V, R, heads=4):
    """Heads that are split from rows, and joined again."""
    k, v = tw.split_cols(tw.load_tile(K), heads), tw.split_cols(tw.load_tile(V), heads)
    for i in tw.metapipe(Q.shape[0]):
        q = tw.split_cols(tw.load_tile(Q[i, :]), heads)
        tw.store_tile(R[i, :], tw.join_cols(*map(attend, q, k, v)))


@tw.kernel("Q[M, C], K[S, C], V[S, C] -> R[M, C]")
def loop_of_heads(Q, K, V, R, heads=4):
    """The same with a loop over points."""
    width = Q.shape[1] // heads
    for h in tw.each(heads):
        own = slice(h * width, h * width + width)
        k, v = tw.load_tile(K[:, own]), tw.load_tile(V[:, own])
        for i in tw.metapipe(Q.shape[0]):
            tw.store_tile(R[i, own], attend(tw.load_tile(Q[i, own]), k, v))


@tw.kernel("Q[M, C], K[S, C], V[S, C] -> R[M, C]")
def range_of_heads(Q, K, V, R, heads=4):
    """The same with a loop of Python."""
    width = Q.shape[1] // heads
    for h in range(heads):
        own = slice(h * width, h * width + width)
        k, v = tw.load_tile(K[:, own]), tw.load_tile(V[:, own])
        for i in tw.metapipe(Q.shape[0]):
            tw.store_tile(R[i, own], attend(tw.load_tile(Q[i, own]), k, v))


@tw.kernel("X[M, C], Wq[C, C], Wk[C, C], Wv[C, C], Wo[C, C] -> Y[M, C]")
def layer(X, Wq, Wk, Wv, Wo, Y, heads=4):
    """Heads of products, and a product of their results."""
    x = tw.load_tile(X)
    q, k, v = (tw.split_cols((x @ tw.load_tile(w)).to(tw.bf16), heads) for w in (Wq, Wk, Wv))
    r = tw.join_cols(*map(attend, q, k, v)).to(tw.bf16)
    tw.store_tile(Y, r @ tw.load_tile(Wo))


@tw.kernel("X[M, C], cs[M, E], sn[M, E], W[C, J] -> Y[M, C]")
def rotated(X, cs, sn, W, Y, heads=4):
    """Heads of a third of a product, whose halves are joined again in each head."""
    c, s = tw.load_tile(cs), tw.load_tile(sn)

    def turned(x):
        a, b = tw.split_cols(x, 2)
        return tw.join_cols(a * c - b * s, b * c + a * s).to(tw.bf16)

    product = (tw.load_tile(X) @ tw.load_tile(W)).to(tw.bf16)
    q, k, v = (tw.split_cols(each, heads) for each in tw.split_cols(product, 3))
    tw.store_tile(Y, tw.join_cols(*map(attend, map(turned, q), map(turned, k), v)))


@tw.kernel("Q[M, C], K[S, E], V[S, E] -> R[M, C]")
def grouped(Q, K, V, R, heads=8, groups=2):
    """Heads that share keys and values."""
    k, v = tw.split_cols(tw.load_tile(K), groups), tw.split_cols(tw.load_tile(V), groups)
    for i in tw.metapipe(Q.shape[0]):
        q = tw.split_cols(tw.load_tile(Q[i, :]), heads)
        group = [h * groups // heads for h in range(heads)]
        found = [attend(q[h], k[g], v[g]) for h, g in enumerate(group)]
        tw.store_tile(R[i, :], tw.join_cols(*found))


@tw.kernel("Q[M, C], K[M, C], V[M, C] -> R[M, C]")
def causal(Q, K, V, R, heads=4):
    """Heads with one mask."""
    k, v = tw.split_cols(tw.load_tile(K), heads), tw.split_cols(tw.load_tile(V), heads)
    for i in tw.metapipe(Q.shape[0]):
        found = []
        for q, own, values in zip(tw.split_cols(tw.load_tile(Q[i, :]), heads), k, v, strict=True):
            s = q @ own.T * q.shape[1] ** -0.5
            e = tw.exp(tw.where(tw.col_index(s) <= tw.row_index(i), s, -tw.inf))
            found.append((e.to(tw.bf16) @ values) / tw.row_sum(e))
        tw.store_tile(R[i, :], tw.join_cols(*found))


@tw.kernel("X[B, M, C], g[C], b[C] -> Y[B, M, C]")
def group_norm(X, g, b, Y, groups=4):
    """Groups of columns beside vectors, which are split, too."""
    gain, bias = tw.split_cols(tw.load_tile(g), groups), tw.split_cols(tw.load_tile(b), groups)
    for n in tw.each(X.shape[0]):
        found = []
        for x, w, c in zip(tw.split_cols(tw.load_tile(X[n]), groups), gain, bias, strict=True):
            count = x.shape[0] * x.shape[1]
            d = x - tw.col_sum(tw.row_sum(x)) / count
            found.append(d * tw.rsqrt(tw.col_sum(tw.row_sum(d * d)) / count + 1e-5) * w + c)
        tw.store_tile(Y[n], tw.join_cols(*found))


@tw.kernel("X[M, C] -> Y[M, C], R[M, C]")
def rows(X, Y, R):
    """Rows by a loop of Python, of two results."""
    for i in range(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))
        tw.store_tile(R[i, :], x * tw.row_max(x))


@tw.kernel("X[M, C], W[C, C] -> Y[M, C], Z[M, C], R[M, C], T[M, C]")
def several(X, W, Y, Z, R, T, count=4):
    """Two loops of pieces beside two results of one product; names with numbers of their own."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        y = (x @ tw.load_tile(W)).to(tw.bf16)
        tw.store_tile(R[i, :], y * 2)
        tw.store_tile(T[i, :], y + 1)
        x = tw.split_cols(x, count)
        tw.store_tile(Y[i, :], tw.join_cols(*(each * tw.row_max(each) for each in x)))
        tw.store_tile(Z[i, :], tw.join_cols(*(each - tw.row_sum(each) for each in x)))


#: Kernel, sizes, points of each loop.
CASES = {
    "heads": (heads, {"M": 20, "S": 24, "C": 64}, [4]),
    "range": (range_of_heads, {"M": 20, "S": 24, "C": 64}, [4]),
    "layer": (layer, {"M": 20, "C": 64}, [4]),
    "rotated": (rotated, {"M": 20, "C": 64, "E": 8, "J": 192}, [4]),
    "grouped": (grouped, {"M": 20, "S": 24, "C": 64, "E": 16}, [2, 4]),
    "causal": (causal, {"M": 20, "C": 64}, [4]),
    "several": (several, {"M": 20, "C": 64}, [4, 4]),
    "groups": (group_norm, {"B": 3, "M": 10, "C": 64}, [4]),
    "rows": (rows, {"M": 6, "C": 24}, [6, 6]),
}


def summed(kernel, **sizes):
    return accumulate(check(kernel.trace(dtype=tw.bf16, **sizes)))


def pieces(program):
    """Points of the loops of pieces."""
    loops = [each for each in walk(program.nodes) if isinstance(each, ir.Loop)]
    return [each.extent for each in loops if each.index.split(".")[0] == "piece"]


def require_same_bits(program, other, seed):
    """Golden of two forms of a program, with blocks of the same sizes."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    inputs = {
        each.name: random_operand(rng, each.type.shape, each.type.format)
        for each in program.tensors
        if each.type.role.value in ("in", "inout")
    }
    block = draw.randint(1, 12)
    one, two = (golden(choose_sizes(each, {}, default=block), inputs) for each in (program, other))
    for name, wanted in one.items():
        assert two[name].tobytes() == wanted.tobytes(), name


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_stores_become_a_loop_with_the_same_bits(case, seed):
    kernel, sizes, points = case
    program = summed(kernel, **sizes)
    rolled = roll(program)
    assert pieces(rolled) == points
    require_same_bits(program, rolled, seed)


def test_heads_are_as_fast_as_those_of_a_loop_over_points():
    sizes = {"M": 100, "S": 120, "C": 128}
    found = [
        Problem(each, named["small"], sizes, bf16).compile() for each in (heads, loop_of_heads)
    ]
    assert [len(each.parts) for each in found] == [1, 1]
    assert found[0].predicted_cycles == found[1].predicted_cycles


def test_heads_of_products_have_a_part_for_each_product_and_one_between():
    found = Problem(layer, named["small"], {"M": 40, "C": 64}, bf16).compile()
    assert [each.softmax is not None for each in found.parts] == [False, False, False, True, False]
    assert not any("not fused" in each for each in found.notes)


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rolled_kernels_equal_golden(case, chip, seed):
    kernel, sizes, _ = case
    require_equal(kernel, sizes, chip, seed, "emulator")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rolled_kernels_equal_golden_on_the_rtl(case, seed, heavy):
    kernel, sizes, _ = case
    require_equal(kernel, sizes, "small", seed, "rtl")


def require_equal(kernel, sizes, chip, seed, backend):
    rng = np.random.default_rng(seed)
    tensors = kernel.trace(dtype=tw.bf16, **sizes).tensors
    inputs = [
        random_operand(rng, each.type.shape, bf16)
        for each in tensors
        if each.type.role.value in ("in", "inout")
    ]
    found = kernel.run(*inputs, config=chip, backend=backend)
    assert found.verified, found.problems


#: Functions of a piece x beside y, the tile that is split, and its number; points of the loop if
#: pieces are of one tile, and if each has a loop of its own.
FORMULAS = {
    "maximum": (lambda x, y, n: x * tw.row_max(x), 4, 4),
    "sum": (lambda x, y, n: x - tw.row_sum(abs(x)) * 0.25, 4, 4),
    "products": (lambda x, y, n: (x @ x.T).to(tw.bf16) @ x, 4, 4),
    "choice": (lambda x, y, n: tw.where(x > tw.row_min(x), x, tw.exp(x)), 4, 4),
    "numbers differ": (lambda x, y, n: x * tw.row_max(x) * (n + 1.0), 0, 0),
    "a shared statistic": (lambda x, y, n: x * tw.row_max(y), 0, 4),
    "element math": (lambda x, y, n: x * 2.0 + 1.0, 0, 4),
    "the first differs": (lambda x, y, n: x * (tw.row_max(x) if n else tw.row_min(x)), 3, 3),
    "the last differs": (lambda x, y, n: tw.row_max(x) * (x if n < 3 else tw.exp(x)), 3, 3),
}


def pieces_of(formula, count, joined):
    """A kernel that computes a formula of each piece of its rows."""

    @tw.kernel("X[M, C] -> Y[M, C]")
    def split(X, Y):
        for i in tw.metapipe(X.shape[0]):
            y = tw.load_tile(X[i, :])
            found = [formula(x, y, number) for number, x in enumerate(tw.split_cols(y, count))]
            tw.store_tile(Y[i, :], tw.join_cols(*found))

    @tw.kernel("X[M, C] -> Y[M, C]")
    def ranges(X, Y):
        width = X.shape[1] // count
        for number in range(count):
            own = slice(number * width, (number + 1) * width)
            for i in tw.metapipe(X.shape[0]):
                y = tw.load_tile(X[i, :])
                tw.store_tile(Y[i, own], formula(tw.load_tile(X[i, own]), y, number))

    return split if joined else ranges


@pytest.mark.parametrize("joined", [True, False], ids=["joined", "ranges"])
@pytest.mark.parametrize("case", FORMULAS.values(), ids=FORMULAS)
def test_pieces_are_a_loop_if_they_compute_the_same(case, joined, seed):
    formula, *points = case
    program = summed(pieces_of(formula, 4, joined), M=7, C=32)
    rolled = roll(program)
    count = points[0 if joined else 1]
    assert pieces(rolled) == ([count] if count else [])
    assert count or rolled is program
    require_same_bits(program, rolled, seed)


def test_stores_that_stay_share_what_they_need():
    program = roll(summed(several, M=20, C=64))
    assert sum(isinstance(each, ir.Matmul) for each in walk(program.nodes)) == 1


def test_pieces_at_unequal_distances_are_not_in_one_loop(seed):
    @tw.kernel("X[M, C] -> Y[M, C]")
    def unequal(X, Y):
        for first in (0, 8, 24):
            x = tw.load_tile(X[:, first : first + 8])
            tw.store_tile(Y[:, first : first + 8], x * tw.row_max(x))
        tw.store_tile(Y[:, 16:24], tw.load_tile(X[:, 16:24]))

    program = summed(unequal, M=7, C=32)
    rolled = roll(program)
    assert pieces(rolled) == [2]
    require_same_bits(program, rolled, seed)


def test_pieces_in_any_order_are_a_loop(seed):
    @tw.kernel("X[M, C] -> Y[M, C]")
    def backwards(X, Y):
        for first in (16, 0, 24, 8):
            x = tw.load_tile(X[:, 24 - first : 32 - first])
            tw.store_tile(Y[:, first : first + 8], x * tw.row_max(x))

    program = summed(backwards, M=7, C=32)
    rolled = roll(program)
    assert pieces(rolled) == [4]
    require_same_bits(program, rolled, seed)


def test_columns_that_no_transfer_begins_at_are_no_pieces():
    program = summed(pieces_of(FORMULAS["maximum"][0], 4, joined=True), M=7, C=20)
    assert roll(program) is program


def test_a_loop_that_is_refused_leaves_the_stores(monkeypatch):
    """The kernel is compiled as its program prints it."""
    forms = []

    def refused(program, *arguments):
        forms.append("roll" in program.passes)
        if forms[-1]:
            raise BadInputError("no loops today", kind="unserved")
        return divide(program, *arguments)

    divide = kernel_steps.divide
    monkeypatch.setattr(kernel_steps, "divide", refused)
    sizes = {"M": 20, "C": 64}
    found = Problem(
        pieces_of(FORMULAS["maximum"][0], 4, joined=True), named["small"], sizes, bf16
    ).compile()
    assert forms == [True, False]
    assert not pieces(found.golden_program)


@tw.kernel("X[E, M, N], W[N, N] -> Y[M, C]")
def joined_sums(X, W, Y, steps=0):
    """Sums of joined tiles over points, and element math of them."""
    w = tw.load_tile(W)
    for i in tw.metapipe(X.shape[1]):
        y = tw.zeros(i, Y.shape[1])
        for e in tw.each(X.shape[0]):
            x = tw.load_tile(X[e, i, :]) @ w
            z = tw.join_cols(x, tw.exp(x))
            for _ in range(steps):
                z = z * z + z * 0.5
            y = y + z
        tw.store_tile(Y[i, :], y)


@pytest.mark.parametrize("steps", [0, 60])
def test_joined_tiles_that_a_loop_sums_are_local_tensors(steps):
    """Element math in many steps is looked through once, not once for each path."""
    program = joined_sums.trace(dtype=bf16, E=3, M=16, N=16, C=32, steps=steps)
    program = simplify(accumulate(check(program)))
    stored = with_piece_tensors(program, ())
    assert len(stored.tensors) == len(program.tensors) + 1
