"""Windows of keys: what a mask hides from all rows of a tile is not read, with known bits."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.ir.nodes import Load, Loop
from sw.ir.rewrite import walk
from sw.kernels.flash_attention import LOWEST, attend, flash_attention
from tests.sw.kernels.kernels_by_definition import window_parts
from tests.sw.kernels.test_compiled_kernels import require_equal


def heads(config, options=None, **sizes):
    return compile_kernel(
        flash_attention, named[config], dims=sizes, dtype=bf16, options=options or {}
    )


def cycles(*arguments, **sizes):
    return heads(*arguments, **sizes).prediction().cycles


def test_random_windows_have_the_bits_of_the_definition(seed, draws):
    """Of few rows with many keys, of as many rows as keys, and of any."""
    rng = np.random.default_rng(seed)

    def size(most):
        return int(np.exp(rng.uniform(0, np.log(most))))

    for number in range(draws(6, 40)):
        config = ("small", "large", "tiny")[number % 3]
        most = 60 if config == "tiny" else 400
        sizes = {"H": 2, "G": int(rng.integers(1, 3)), "M": size(most), "S": size(most)}
        sizes |= {"D": int(rng.choice([8, 16, 24]))} | ({"M": sizes["S"]} if number % 2 else {})
        options = {"window": size(max(2, sizes["S"] // 3))}
        require_equal(rng, "flash_attention", config, sizes, bf16, None, options=options)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "keys"), [(1, 300), (300, 300)])
def test_windows_on_the_rtl(rows, keys, seed, heavy):
    rng = np.random.default_rng(seed)
    sizes = {"H": 3, "G": 1, "M": rows, "S": keys, "D": 32}
    options = {"window": 40}
    require_equal(
        rng, "flash_attention", "small", sizes, bf16, None, backend="rtl", options=options
    )


@tw.kernel("Q[M, D], K[M, D], V[M, D] -> R[M, D]")
def whole_rows(Q, K, V, R, window=60):
    """All keys in a tile, which the mask alone hides; the softmax before the second product."""
    M, D = Q.shape
    for i in tw.metapipe(M):
        s = tw.load_tile(Q[i, :]) @ tw.load_tile(K).T * D**-0.5
        at = tw.row_index(i) - tw.col_index(s)
        s = tw.where(at >= 0, s, -tw.inf)
        s = tw.where(at < window, s, -tw.inf)
        p = tw.exp(s - tw.row_max(s))
        tw.store_tile(R[i, :], (p / tw.row_sum(p)).to(tw.bf16) @ tw.load_tile(V))


def test_windows_of_whole_rows_are_those_of_a_loop_over_blocks():
    sizes = {"M": 500, "D": 16}
    found = compile_kernel(whole_rows, named["small"], dims=sizes, dtype=bf16)
    sizes |= {"H": 1, "G": 1, "S": 500}
    assert found.predicted_cycles == cycles("small", {"window": 60}, **sizes)


def test_queries_are_cut_into_parts_with_the_keys_of_their_window():
    sizes = {"H": 1, "G": 1, "M": 500, "S": 500, "D": 16}
    program = heads("small", {"window": 60}, **sizes).golden_program
    loops = [each for each in walk(program.nodes) if isinstance(each, Loop)]
    rows = [(each.index, each.extent) for each in loops if each.index.split(".")[0] == "i"]
    keys = [each.extent for each in loops if each.index.startswith("attend.j")]
    points = [each.extent for each in loops if each.index == "chunk"]
    assert rows == [("i.2", 64), ("i", 32), ("i.3", 20)]
    assert keys == [64, 32 + 59, 20 + 59] and points == [13]
    assert [each for each, *_ in window_parts(500, 500, 60)] == [0, *[1] * 13, 2]


@pytest.mark.parametrize(
    ("count", "keys", "points"),
    [(2, 4096, []), (1, 4096, [2]), (2, 286, [2])],
    ids=["heads", "one head", "too many keys"],
)
def test_few_points_of_several_heads_are_one(count, keys, points):
    """A quarter more keys cost less than launches, unless too many of all keys stay then."""
    program = heads("small", {"window": 128}, H=count, G=count, M=64, S=keys, D=16).golden_program
    loops = [each for each in walk(program.nodes) if isinstance(each, Loop)]
    assert [each.extent for each in loops if each.index == "chunk"] == points
    assert len(window_parts(64, keys, 128, count)) == (points or [1])[0]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("config", "sizes", "window", "share"),
    [
        ("large", {"H": 12, "G": 4, "M": 1, "S": 4096}, 128, 0.08),
        ("small", {"H": 4, "G": 4, "M": 1, "S": 4096}, 128, 0.06),
        ("large", {"H": 4, "G": 4, "M": 64, "S": 4096}, 128, 0.15),
        ("small", {"H": 1, "G": 1, "M": 1024, "S": 1024}, 128, 0.50),
    ],
)
def test_a_window_takes_a_part_of_the_cycles(config, sizes, window, share):
    sizes = sizes | {"D": 64}
    whole = cycles(config, {"causal": True}, **sizes)
    assert cycles(config, {"window": window}, **sizes) <= share * whole


def test_a_window_of_about_all_keys_stays_one_part():
    found = heads("small", {"window": 150}, H=1, G=1, M=200, S=200, D=16)
    assert len(found.parts) == 1
    loads = [each for each in walk(found.golden_program.nodes) if isinstance(each, Load)]
    assert len(loads) == 3


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> Y[M, D]")
def whole_tile(Q, K, V, Y, window=0):
    """All queries are a tile, which has no loop to cut."""
    at = tw.row_index(Q.shape[0]) + (K.shape[0] - Q.shape[0])
    o = attend(tw.load_tile(Q), K, V, Q.shape[1] ** -0.5, at=at, window=window)
    tw.store_tile(Y, o.to(tw.bf16))


def test_a_whole_tile_begins_at_its_first_key(seed):
    compiled = compile_kernel(
        whole_tile,
        named["small"],
        dims={"M": 5, "S": 200, "D": 16},
        dtype=bf16,
        options={"window": 30},
    )
    keys = [each for each in walk(compiled.golden_program.nodes) if isinstance(each, Loop)]
    assert [each.extent for each in keys] == [34]
    draw = np.random.default_rng(seed)
    given = [draw.normal(size=each).astype(bf16.dtype) for each in ((5, 16), (200, 16), (200, 16))]
    given[2][:166] = np.nan
    found = whole_tile.run(*given, config="small", backend="emulator", window=30)
    assert found.verified and np.isfinite(found.Y.astype(np.float32)).all()


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> Y[M, D]")
def both_sides(Q, K, V, Y, beside=0):
    """Keys at most so far before a query, and behind it."""
    for i in tw.metapipe(Q.shape[0]):
        q = tw.load_tile(Q[i, :])
        m, n, o = tw.full(i, 1, LOWEST), tw.zeros(i, 1), tw.zeros(i, V.shape[1])
        for j in tw.metapipe(K.shape[0]):
            s = q @ tw.load_tile(K[j, :]).T * 0.25
            far = abs(tw.row_index(i) - tw.col_index(j))
            s = tw.where(far <= beside, s, -tw.inf)
            top = tw.maximum(m, tw.row_max(s))
            p, fade = tw.exp(s - top), tw.exp(m - top)
            n = n * fade + tw.row_sum(p)
            o = o * fade + p.to(tw.bf16) @ tw.load_tile(V[j, :])
            m = top
        tw.store_tile(Y[i, :], (o / n).to(tw.bf16))


@both_sides.reference
def _(Q, K, V, beside=0):
    near = np.abs(np.arange(len(Q))[:, np.newaxis] - np.arange(len(K))) <= beside
    e = np.where(near, np.exp(Q @ K.T * 0.25), 0)
    return e @ V / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rows", [300, 333])
def test_a_window_on_both_sides_is_cut_too(rows, seed):
    draw = np.random.default_rng(seed)
    given = [draw.normal(size=(rows, 16)).astype(bf16.dtype) for _ in range(3)]
    found = both_sides.run(*given, config="small", backend="emulator", beside=20)
    assert found.verified, found.problems
    dims = {"M": rows, "S": rows, "D": 16}
    near, far = (
        compile_kernel(both_sides, named["small"], dims=dims, dtype=bf16, options={"beside": each})
        for each in (20, rows)
    )
    assert near.prediction().cycles <= 0.7 * far.prediction().cycles


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> Y[M, D], N[M, 1]: int32")
def numbered(Q, K, V, Y, N):
    """The number of the last key is stored, too: it must be that of the whole loop."""
    for i in tw.metapipe(Q.shape[0]):
        at = tw.row_index(i) + (K.shape[0] - Q.shape[0])
        o = attend(tw.load_tile(Q[i, :]), K, V, 0.25, at=at, window=20)
        tw.store_tile(Y[i, :], o.to(tw.bf16))
        tw.store_tile(N[i, :], at)


def test_numbers_that_a_result_needs_are_kept(seed):
    draw = np.random.default_rng(seed)
    given = [draw.normal(size=(300, 16)).astype(bf16.dtype) for _ in range(3)]
    found = numbered.run(*given, config="small", backend="emulator")
    assert found.verified and np.array_equal(found.N[:, 0], np.arange(300))


@pytest.mark.slow
def test_a_window_of_no_key_stays_one_part():
    dims, options = {"M": 100, "S": 100, "D": 16}, {"beside": -1}
    found = compile_kernel(both_sides, named["small"], dims=dims, dtype=bf16, options=options)
    loops = [each for each in walk(found.golden_program.nodes) if isinstance(each, Loop)]
    assert [each.extent for each in loops] == [100, 100]


def test_a_negative_window_is_refused():
    with pytest.raises(tw.BadInputError, match="window must be a number of keys.*, not -3"):
        heads("small", {"window": -3}, H=2, G=2, M=8, S=64, D=16)
