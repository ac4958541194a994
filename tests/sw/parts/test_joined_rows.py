"""Rows of points that follow one another are one loop: fewer launches, the same bits."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16
from sim.run.api import compile_kernel
from sw.array_spec import arrays_of
from sw.ir.nodes import Loop
from sw.ir.rewrite import walk
from sw.kernels.flash_attention import attend, flash_attention
from sw.parts.divide import divide
from sw.parts.points.peel import peeled
from tests.sw.parts.test_division import agree, lean, served_by

SIZES = {"H": 6, "G": 2, "M": 5, "N": 16}


@tw.kernel("X[H, M, N], W[G, N, N] -> Y[H, M, N]")
def grouped(X, W, Y):
    (H, M, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                tw.store_tile(Y[h, i, :], tw.load_tile(X[h, i, :]) @ tw.load_tile(W[g]))


@tw.kernel("X[H, M, N], W[G, N, N] -> Y[H, M, N]")
def numbered_rows(X, W, Y):
    (H, M, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                x = tw.load_tile(X[h, i, :])
                tw.store_tile(Y[h, i, :], tw.where(tw.row_index(i) >= 2, x, 0.0))


@tw.kernel("X[H, M, N], W[H, N, N] -> Y[H, M, N]")
def own_weights(X, W, Y):
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            tw.store_tile(Y[h, i, :], tw.load_tile(X[h, i, :]) @ tw.load_tile(W[h]))


@tw.kernel("X[M, H, N], W[G, N, N] -> Y[M, H, N]")
def rows_apart(X, W, Y):
    (M, H, _), G = X.shape, W.shape[0]
    for g in tw.each(G):
        for r in tw.each(H // G):
            for i in tw.metapipe(M):
                h = g * (H // G) + r
                tw.store_tile(Y[i, h, :], tw.load_tile(X[i, h, :]) @ tw.load_tile(W[g]))


@tw.kernel("X[M, H, N], W[N, N] -> Y[M, H, N]")
def heads_inside(X, W, Y):
    for h in tw.each(X.shape[1]):
        for i in tw.metapipe(X.shape[0]):
            tw.store_tile(Y[i, h, :], tw.load_tile(X[i, h, :]) @ tw.load_tile(W))


@tw.kernel("X[H, M, K], W[K, N], b[N] -> Y[H, M, N]")
def whole_points(X, W, b, Y):
    """Points that take all their rows in one tile."""
    w, b = tw.load_tile(W), tw.load_tile(b)
    for h in tw.each(X.shape[0]):
        tw.store_tile(Y[h], tw.maximum(tw.load_tile(X[h]) @ w + b, 0.0))


@tw.kernel("X[M, N], g[W] -> Y[M, N]")
def parts_of_columns(X, g, Y):
    """A norm of each part of the columns, which are the heads of a row."""
    W = g.shape[0]
    for h in tw.each(X.shape[1] // W):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, W * h : W * h + W])
            y = x * tw.rsqrt(tw.row_mean(x * x) + 1e-5)
            tw.store_tile(Y[i, W * h : W * h + W], y * tw.load_tile(g))


@tw.kernel("Q[G, R, M, D], K[G, S, D], V[G, S, D] -> Y[G, R, M, D]")
def whole_queries(Q, K, V, Y, past=-1, window=0):
    """Attention of whole tiles of queries; `past` and more keys are seen unless it is negative."""
    (G, R, M, D), seen = Q.shape, {}
    if past >= 0:
        seen = {"at": tw.row_index(M) + past, "window": window}
    for g in tw.each(G):
        for r in tw.each(R):
            o = attend(tw.load_tile(Q[g, r]), K[g], V[g], D**-0.5, **seen)
            tw.store_tile(Y[g, r], o.to(tw.bf16))


def joined(kernel):
    sizes = {dim: SIZES[dim] for dim in kernel.signature.dims}
    program = lean(kernel, **sizes)
    return program, peeled(program, {each.name: each for each in arrays_of(program)})


def test_rows_of_a_group_are_one_loop_of_an_iteration(seed):
    program, (part, _) = joined(grouped)
    assert [each.extent for each in part.program.nodes if isinstance(each, Loop)] == [15]
    assert [each.shape for each in part.arrays] == [(15, 16), (16, 16), (15, 16)]
    (launch,) = part.launches
    assert launch.repeat == 2
    found = divide(program, served_by(named["small"]))
    assert [each.arrays for each in found.parts] == [part.arrays]
    assert agree(program, found, np.random.default_rng(seed), random.Random(seed))


@pytest.mark.parametrize(
    "kernel",
    [numbered_rows, own_weights, rows_apart],
    ids=lambda each: each.name,
)
def test_rows_that_are_not_alike_stay_apart(kernel):
    assert len(joined(kernel)[1]) == 1


def test_rows_between_those_of_other_points_are_one_loop(seed):
    program, (part, _) = joined(heads_inside)
    assert [each.extent for each in part.program.nodes if isinstance(each, Loop)] == [30]
    assert [each.shape for each in part.arrays] == [(30, 16), (16, 16), (30, 16)]
    assert [each.row_pitch for each in part.arrays] == [None] * 3
    assert [launch.repeat for launch in part.launches] == [1]
    found = divide(program, served_by(named["small"]))
    assert agree(program, found, np.random.default_rng(seed), random.Random(seed))


@pytest.mark.parametrize(("m", "k"), [(5, 16), (5, 5)])
def test_points_that_take_one_matrix_are_rows_of_one_product(m, k, seed):
    """Also if the matrix has as many rows as a point."""
    program = lean(whole_points, H=6, M=m, K=k, N=8)
    (part, _) = peeled(program, {each.name: each for each in arrays_of(program)})
    assert [each.extent for each in part.program.nodes if isinstance(each, Loop)] == [6 * m]
    assert [each.shape for each in part.arrays] == [(6 * m, k), (k, 8), (8,), (6 * m, 8)]
    draw = np.random.default_rng(seed)
    shapes = (6, m, k), (k, 8), 8
    given = (draw.normal(size=each).astype(bf16.dtype) for each in shapes)
    found = whole_points.run(*given, config="small", backend="emulator")
    assert found.verified, found.problems


def test_parts_of_rows_fill_the_lanes(seed):
    """Eight heads of 64 rows: each iteration of one had four groups of rows for eight PCUs."""
    compiled = compile_kernel(parts_of_columns, "small", dtype=bf16, M=64, N=512, W=64)
    assert len(compiled.images) == 1 and compiled.predicted_cycles <= 7_800
    draw = np.random.default_rng(seed)
    x, g = (draw.normal(size=each).astype(bf16.dtype) for each in ((37, 192), 64))
    found = parts_of_columns.run(x, g, config="small", backend="emulator")
    assert found.verified, found.problems


def queries_of(draw, **sizes):
    return [
        draw.normal(size=[sizes[each] for each in axes]).astype(bf16.dtype)
        for axes in ("GRMD", "GSD", "GSD")
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize("config", ["small", "large"])
@pytest.mark.parametrize(
    ("rows", "options"),
    [(1, {}), (1, {"past": 255}), (1, {"past": 99}), (4, {})],
    ids=["one", "last", "earlier", "four"],
)
def test_whole_queries_of_a_group_take_its_keys_once(config, rows, options):
    """As with a loop over rows; the number of one row hides the same keys from all heads."""
    sizes = {"M": rows, "D": 64, "S": 256}
    one = compile_kernel(whole_queries, config, dtype=bf16, G=4, R=3, **sizes, **options)
    whole = compile_kernel(flash_attention, config, dtype=bf16, H=12, G=4, **sizes)
    assert len(one.images) == 1 and one.predicted_cycles <= whole.predicted_cycles


def test_one_causal_query_is_a_row_like_others():
    sizes = {"H": 12, "G": 4, "M": 1, "S": 256, "D": 64}
    free, causal = (
        compile_kernel(flash_attention, "large", dtype=bf16, **sizes, causal=each)
        for each in (False, True)
    )
    assert causal.predicted_cycles <= free.predicted_cycles


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "options", [{}, {"past": 20}, {"past": 7, "window": 5}], ids=["all", "past", "window"]
)
def test_whole_queries_equal_golden(options, seed, draws):
    draw = np.random.default_rng(seed)
    for _ in range(draws(4, 20)):
        sizes = {each: int(draw.integers(1, most)) for each, most in zip("GRM", (4, 5, 4))}
        given = queries_of(draw, **sizes, S=int(draw.integers(24, 60)), D=int(draw.choice([8, 16])))
        config = draw.choice(["tiny", "small", "large"])
        found = whole_queries.run(*given, config=config, backend="emulator", **options)
        assert found.verified, (config, sizes, found.problems)


@tw.kernel("Q[H, M, D], K[H, S, D], V[H, S, D] -> Y[M, H, D]")
def heads_beside(Q, K, V, Y):
    (H, M, D), S = Q.shape, K.shape[1]
    for h in tw.each(H):
        at = tw.row_index(M) + (S - M)
        o = attend(tw.load_tile(Q[h]), K[h], V[h], D**-0.5, at=at)
        tw.store_tile(Y[:, h, :], o.to(tw.bf16))


def test_points_that_write_parts_of_the_same_rows_are_one_launch(seed):
    """An iteration stores between the rows of the others, but no byte of them."""
    sizes = {"H": 5, "M": 12, "S": 40, "D": 16}
    compiled = compile_kernel(heads_beside, "small", dtype=bf16, **sizes)
    assert len(compiled.images) == 1
    draw = np.random.default_rng(seed)
    shapes = (5, 12, 16), (5, 40, 16), (5, 40, 16)
    given = (draw.normal(size=each).astype(bf16.dtype) for each in shapes)
    found = heads_beside.run(*given, config="small", backend="emulator")
    assert found.verified, found.problems
    program = lean(heads_beside, **sizes)
    (part,) = peeled(program, {each.name: each for each in arrays_of(program)})
    assert [each.repeat for each in part.launches] == [5]


@tw.kernel("Y[H, M, N] -> Y[H, M, N]")
def ended_rows(Y):
    for h in tw.each(Y.shape[0]):
        for i in tw.metapipe(Y.shape[1], until=h):
            tw.store_tile(Y[h, i, :], tw.load_tile(Y[h, i, :]) * 2.0)


def test_a_loop_over_one_row_keeps_its_end():
    """Point 0 has no row: its end is not that of the others."""
    with pytest.raises(BadInputError, match="not supported by hardware yet"):
        compile_kernel(ended_rows, "small", dtype=bf16, H=4, M=1, N=16)


@tw.kernel("X[H, M, N], g[N] -> Y[H, M, N]")
def gain_before(X, g, Y):
    gain = tw.load_tile(g) + 1.0
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            tw.store_tile(Y[h, i, :], tw.load_tile(X[h, i, :]) * gain)


def test_what_is_made_of_loads_before_a_loop_over_rows_does_not_keep_points_apart(seed):
    program, (part, _) = joined(gain_before)
    loops = [each for each in walk(part.program.nodes) if isinstance(each, Loop)]
    assert [each.extent for each in loops] == [30]
    found = divide(program, served_by(named["small"]))
    assert [each.arrays for each in found.parts] == [part.arrays]
    assert agree(program, found, np.random.default_rng(seed), random.Random(seed))
