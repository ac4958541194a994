"""Columns that begin where no transfer can: rows of transposed tensors, with the same bits."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, int8
from sim.operands import random_operand
from sw.compiler import compile_kernel
from sw.ir import nodes as ir
from sw.ir.rewrite import walk
from sw.ir.verify import verify
from sw.parts.forms.turned_columns import with_turned_columns
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from tests.sw.parts.random_columns import draw_columns
from tests.sw.passes.test_roll import require_same_bits


@tw.kernel("X[M, C], P[M, N] -> Y[M, N]: bf16")
def blur(X, P, Y):
    """Weighted sums of neighbours along a row; `P` gives the size of the result."""
    n = P.shape[1]
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], (x[:, :-2] + 2 * x[:, 1 : n + 1] + x[:, 2:]) * 0.25)


@blur.reference
def _(X, P):
    return (X[:, :-2] + 2 * X[:, 1:-1] + X[:, 2:]) / 4


@tw.kernel("X[M, N] -> Y[M, N]: fp32")
def prefix_sums(X, Y):
    """Sums of all elements up to each, by doubling."""
    for i in tw.metapipe(X.shape[0]):
        x, step = tw.load_tile(X[i, :]).to(tw.fp32), 1
        while step < X.shape[1]:
            x = x + tw.join_cols(tw.zeros(i, step), x[:, :-step])
            step *= 2
        tw.store_tile(Y[i, :], x)


@prefix_sums.reference
def _(X):
    return np.cumsum(X, axis=1)


@tw.kernel("X[H, M, N] -> Y[H, M, N]")
def rotated(X, Y):
    """Columns moved by one, the last one first."""
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            x = tw.load_tile(X[h, i, :])
            tw.store_tile(Y[h, i, 1:], x[:, :-1])
            tw.store_tile(Y[h, i, 0:1], x[:, -1:])


@rotated.reference
def _(X):
    return np.roll(X, 1, axis=2)


@tw.kernel("X[M, K], W[E, K, N], R[K, E] -> Y[M, N]: bf16")
def experts(X, W, R, Y):
    """Experts whose results are weighted by a column of a computed softmax each."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        s = x @ tw.load_tile(R)
        g = tw.exp(s - tw.row_max(s))
        g = g / tw.row_sum(g)
        y = tw.zeros(i, W.shape[2])
        for e in tw.each(W.shape[0]):
            y += g[:, e : e + 1] * (x @ tw.load_tile(W[e]))
        tw.store_tile(Y[i, :], y)


@experts.reference
def _(X, W, R):
    g = np.exp(X @ R - (X @ R).max(axis=1, keepdims=True))
    return np.einsum("mk,ekn,me->mn", X, W, g / g.sum(axis=1, keepdims=True))


@tw.kernel("X[M, K], W[E, K, N], G[M, E] -> Y[M, N]: bf16")
def loaded_gates(X, W, G, Y):
    """The same with weights that are loaded."""
    for i in tw.metapipe(X.shape[0]):
        x, y = tw.load_tile(X[i, :]), tw.zeros(i, W.shape[2])
        for e in tw.each(W.shape[0]):
            y += tw.load_tile(G[i, e : e + 1]) * (x @ tw.load_tile(W[e]))
        tw.store_tile(Y[i, :], y)


@loaded_gates.reference
def _(X, W, G):
    return np.einsum("mk,ekn,me->mn", X, W, G)


@tw.kernel("X[M, C], W[C, F], V[C, C] -> Y[M, C]: bf16")
def attention(X, W, V, Y, heads=4):
    """A layer whose heads begin between transfers."""
    d = X.shape[1] // heads
    p = (tw.load_tile(X) @ tw.load_tile(W)).to(tw.bf16)
    found = []
    for h in range(heads):
        q, k, v = (p[:, (j * heads + h) * d :][:, :d] for j in range(3))
        s = q @ k.T * d**-0.5
        e = tw.exp(s - tw.row_max(s))
        found.append(((e / tw.row_sum(e)).to(tw.bf16) @ v).to(tw.bf16))
    tw.store_tile(Y, tw.join_cols(*found) @ tw.load_tile(V))


@attention.reference
def _(X, W, V, heads=4):
    q, k, v = (X @ W).reshape(len(X), 3, heads, -1).transpose(1, 2, 0, 3)
    s = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    e = np.exp(s - s.max(axis=2, keepdims=True))
    o = e / e.sum(axis=2, keepdims=True) @ v
    return o.transpose(1, 0, 2).reshape(X.shape) @ V


@tw.kernel("X[M, C], g[C], b[C] -> Y[M, C]: bf16")
def group_norm(X, g, b, Y, groups=5):
    """Groups that begin between transfers, with pieces of vectors."""
    d = X.shape[1] // groups
    found = []
    for j in range(groups):
        c = slice(j * d, j * d + d)
        x = tw.load_tile(X)[:, c]
        x = x - tw.row_mean(x)
        x = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * tw.load_tile(g[c]) + tw.load_tile(b[c])
        found.append(x.to(tw.bf16))
    tw.store_tile(Y, tw.join_cols(*found))


@group_norm.reference
def _(X, g, b, groups=5):
    x = X.reshape(len(X), groups, -1)
    x = x - x.mean(axis=2, keepdims=True)
    return (x / np.sqrt((x * x).mean(axis=2, keepdims=True) + 1e-5)).reshape(X.shape) * g + b


@tw.kernel("X[H, C], K[R, S], P[M, N] -> Y[M, N]: bf16")
def filtered(X, K, P, Y):
    """A filter, whose rows and columns begin between transfers."""
    n = P.shape[1]
    for i in tw.metapipe(P.shape[0]):
        y = tw.zeros(i, n)
        for r in range(K.shape[0]):
            x = tw.load_tile(X[i.start + r : i.stop + r, :])
            for s in range(K.shape[1]):
                y = y + x[:, s : s + n] * tw.load_tile(K[r : r + 1, s : s + 1])
        tw.store_tile(Y[i, :], y)


@filtered.reference
def _(X, K, P):
    m, n = P.shape
    return sum(X[r : r + m, s : s + n] * K[r, s] for r, s in np.ndindex(K.shape))


@tw.kernel("X[M, N] -> Y[M, N]: bf16")
def relaxed(X, Y):
    """A step of a relaxation; the border stays."""
    last = X.shape[0] - 1
    for rows in (slice(0, 1), slice(last, None)):
        tw.store_tile(Y[rows, :], tw.load_tile(X[rows, :]))
    above, x, below = (tw.load_tile(X[r : r + last - 1, :]) for r in range(3))
    y = (above[:, 1:-1] + below[:, 1:-1] + x[:, :-2] + x[:, 2:]) * 0.25
    left, right = (x[:, ends].to(tw.fp32) for ends in (slice(0, 1), slice(-1, None)))
    tw.store_tile(Y[1:last, :], tw.join_cols(left, y, right))


@relaxed.reference
def _(X):
    Y = X.copy()
    Y[1:-1, 1:-1] = (X[:-2, 1:-1] + X[2:, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:]) / 4
    return Y


@tw.kernel("X[M, N, 2], C[M, N] -> Y[M, N, 2]: bf16")
def pairs(X, C, Y):
    """Real and imaginary parts that alternate."""
    for i in tw.metapipe(X.shape[0]):
        a, b, c = tw.load_tile(X[i, :, 0]), tw.load_tile(X[i, :, 1]), tw.load_tile(C[i, :])
        tw.store_tile(Y[i, :, 0], a * c - b)
        tw.store_tile(Y[i, :, 1], a + b * c)


@pairs.reference
def _(X, C):
    a, b = X[:, :, 0], X[:, :, 1]
    return np.stack([a * C - b, a + b * C], axis=2)


@tw.kernel("X[M, N], a[N] -> Y[M, N]: bf16")
def columns(X, a, Y):
    """Columns one by one, each with an element of a vector."""
    for j in tw.each(X.shape[1]):
        tw.store_tile(Y[:, j], tw.load_tile(X[:, j]) * tw.load_tile(a[j]))


@columns.reference
def _(X, a):
    return X * a


CASES = {
    "pairs": (pairs, {"M": 20, "N": 24}),
    "columns": (columns, {"M": 20, "N": 6}),
    "filtered": (filtered, {"H": 22, "C": 41, "R": 2, "S": 2, "M": 21, "N": 40}),
    "relaxed": (relaxed, {"M": 22, "N": 42}),
    "blur": (blur, {"M": 37, "C": 42, "N": 40}),
    "prefix_sums": (prefix_sums, {"M": 20, "N": 19}),
    "rotated": (rotated, {"H": 2, "M": 21, "N": 40}),
    "experts": (experts, {"M": 24, "K": 32, "E": 3, "N": 32}),
    "loaded_gates": (loaded_gates, {"M": 24, "K": 32, "E": 3, "N": 32}),
    "attention": (attention, {"M": 20, "C": 48, "F": 144}),
    "group_norm": (group_norm, {"M": 21, "C": 60}),
}


def traced(kernel, dtype, sizes):
    return accumulate(check(kernel.trace(dtype=dtype, **sizes)))


def operands(program, seed):
    rng = np.random.default_rng(seed)
    own = (each.type for each in program.tensors if each.type.role.value == "in")
    return [random_operand(rng, each.shape, each.format) for each in own]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_bit_changes(case, seed):
    kernel, sizes = case
    program = traced(kernel, bf16, sizes)
    turned = with_turned_columns(program)
    assert turned is not program
    verify(turned.after("turn", turned.nodes))
    require_same_bits(program, turned, seed)


@pytest.mark.few(4)
@pytest.mark.parametrize("chip", ["tiny", "small"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_such_columns_run(case, chip, seed):
    kernel, sizes = case
    inputs = operands(traced(kernel, bf16, sizes), seed)
    result = kernel.run(*inputs, config=chip, backend="emulator")
    assert result.verified, result.problems


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_such_columns_run_on_the_rtl(case, seed):
    kernel, sizes = case
    inputs = operands(traced(kernel, bf16, sizes), seed)
    result = kernel.run(*inputs, config="tiny")
    assert result.verified, result.problems


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(8))
def test_random_columns(number, seed):
    """Those of which a form is refused keep the first refusal."""
    draw = random.Random(1_000 * seed + number)
    kernel, program = _drawn(draw)
    found = with_turned_columns(program)
    verify(found.after("turn", found.nodes))
    require_same_bits(program, found, seed)
    inputs = operands(program, seed)
    chip = draw.choice(["tiny", "small", "large"])
    try:
        result = kernel.run(*inputs, config=chip, backend="emulator")
    except BadInputError as error:
        assert error.kind in ("unserved", "does-not-fit", "placement"), error
    else:
        assert result.verified, result.problems


def _drawn(draw):
    """A random kernel that the language accepts, and that has such columns."""
    while True:
        whole = draw.random() < 0.3
        kernel, sizes = draw_columns(draw, whole=whole)
        try:
            program = traced(kernel, int8 if whole else bf16, sizes)
        except BadInputError:
            continue
        if with_turned_columns(program) is not program:
            return kernel, program


def test_element_math_is_computed_on_transposed_tiles():
    """One part transposes the input, one computes, one transposes the result."""
    sizes = {"M": 64, "C": 66, "N": 64}
    found = compile_kernel(blur, named["small"], dims=sizes, dtype=bf16)
    moved = [
        any(isinstance(node, ir.Transpose) for node in walk(each.part.program.nodes))
        for each in found.parts
    ]
    assert moved == [True, False, True]


def test_sums_that_later_ones_need_are_stored():
    """Each step would compute all earlier ones again."""
    sizes = {"M": 16, "N": 64}
    found = compile_kernel(prefix_sums, named["small"], dims=sizes, dtype=bf16)
    assert len(found.parts) <= 20


def test_heads_between_transfers_are_one_loop():
    sizes = {"M": 20, "C": 48, "F": 144}
    found = compile_kernel(attention, named["small"], dims=sizes, dtype=bf16)
    assert len(found.parts) <= 8


def test_columns_at_multiples_of_a_transfer_are_not_turned():
    @tw.kernel("X[M, N] -> Y[M, N]")
    def swapped(X, Y):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, :])
            tw.store_tile(Y[i, :], tw.join_cols(x[:, 16:], x[:, :16]))

    program = traced(swapped, bf16, {"M": 10, "N": 40})
    assert with_turned_columns(program) is program
