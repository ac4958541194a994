"""Pieces of programs that update tensors in place: loops keep the order of loads and stores."""

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.run.job import Problem
from sw.passes.roll import roll
from tests.sw.passes.test_roll import attend, pieces, require_equal, require_same_bits, summed


@tw.kernel("x[B, C], Wq[C, C], Wk[C, C], Wv[C, C], K[S, C], V[S, C] -> K, V, R[B, C]")
def decode(x, Wq, Wk, Wv, K, V, R, heads=4, at=5):
    """One token: keys and values are appended to their caches, which the heads then read."""
    t = tw.load_tile(x)
    for cache, weights in ((K, Wk), (V, Wv)):
        tw.store_tile(cache[at : at + x.shape[0], :], (t @ tw.load_tile(weights)).to(tw.bf16))
    q = (t @ tw.load_tile(Wq)).to(tw.bf16)
    split = (tw.split_cols(each, heads) for each in (q, tw.load_tile(K), tw.load_tile(V)))
    tw.store_tile(R, tw.join_cols(*map(attend, *split)))


@tw.kernel("q[B, C], k[B, C], v[B, C], K[S, C], V[S, C] -> K, V, R[B, C]")
def appended_by_heads(q, k, v, K, V, R, heads=4, at=5):
    """Each head appends its own columns."""
    width = q.shape[1] // heads
    for h in range(heads):
        own = slice(h * width, h * width + width)
        for cache, new in ((K, k), (V, v)):
            tw.store_tile(cache[at : at + q.shape[0], own], tw.load_tile(new[:, own]))
    for h in range(heads):
        own = slice(h * width, h * width + width)
        tiles = (tw.load_tile(each[:, own]) for each in (q, K, V))
        tw.store_tile(R[:, own], attend(*tiles))


@tw.kernel("X[M, C], T[M, C] -> T, R[M, C]")
def read_before(X, T, R, pieces=4):
    """Pieces of old elements, and of new ones behind a store."""
    width = X.shape[1] // pieces
    for n in range(pieces):
        x = tw.load_tile(T[:, n * width : n * width + width])
        if n == pieces // 2:
            tw.store_tile(T, tw.load_tile(X))
        tw.store_tile(R[:, n * width : n * width + width], x * tw.row_max(x))


@tw.kernel("X[M, C] , Z[M, C], T[M, C] -> T")
def written_again(X, Z, T, pieces=4):
    """Pieces of columns, between which all columns of a row are written."""
    width = X.shape[1] // pieces
    for n in range(pieces):
        x = tw.load_tile(X[:, n * width : n * width + width])
        tw.store_tile(T[:, n * width : n * width + width], x * tw.row_max(x))
        if n == pieces // 2:
            tw.store_tile(T[0:1, :], tw.load_tile(Z[0:1, :]))


@tw.kernel("X[M, C], T[M, C] -> T")
def overlapping(X, T, pieces=4):
    """Pieces in an order in which a later one overwrites columns of an earlier one."""
    for n in (1, 0, 2):
        x = tw.load_tile(X[:, 8 * n : 8 * n + 16])
        tw.store_tile(T[:, 8 * n : 8 * n + 16], x * tw.row_max(x))


ROLLED = {
    "a token": (decode, {"B": 1, "C": 64, "S": 24}, [4]),
    "tokens": (decode, {"B": 3, "C": 32, "S": 19}, [4]),
    "caches by heads": (appended_by_heads, {"B": 2, "C": 64, "S": 24}, [4, 4, 4]),
}


@pytest.mark.parametrize("case", ROLLED.values(), ids=ROLLED)
def test_what_is_written_first_may_be_read_in_a_loop(case, seed):
    kernel, sizes, points = case
    program = summed(kernel, **sizes)
    rolled = roll(program)
    assert pieces(rolled) == points
    require_same_bits(program, rolled, seed)


@pytest.mark.parametrize("kernel", [read_before, written_again, overlapping])
def test_loads_and_stores_keep_their_order(kernel, seed):
    program = summed(kernel, M=7, C=32)
    rolled = roll(program)
    assert not pieces(rolled)
    require_same_bits(program, rolled, seed)


@pytest.mark.parametrize("chip", ["tiny", "small"])
@pytest.mark.parametrize("case", ROLLED.values(), ids=ROLLED)
def test_rolled_updates_equal_golden(case, chip, seed):
    kernel, sizes, _ = case
    require_equal(kernel, sizes, chip, seed, "emulator")


def test_heads_that_read_a_cache_are_one_part():
    found = Problem(decode, named["small"], {"B": 1, "C": 64, "S": 48}, bf16).compile()
    assert [each.softmax is not None for each in found.parts] == [False, False, False, True]
