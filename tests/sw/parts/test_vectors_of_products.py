"""Tensors of one axis in a product are rows, as are the points of a matrix."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

BF16 = ml_dtypes.bfloat16


@tw.kernel("x[M], y[N] -> Y[M, N]")
def outer(x, y, Y):
    tw.store_tile(Y, tw.load_tile(x).T @ tw.load_tile(y))


@tw.kernel("q[A], K[S, A], b[S] -> p[S]: fp32")
def scores(q, K, b, p):
    tw.store_tile(p, tw.load_tile(q) @ tw.load_tile(K).T + tw.load_tile(b))


@tw.kernel("Q[B, A], K[B, S, A] -> P[B, S]: fp32")
def attention_weights(Q, K, P):
    for b in tw.each(Q.shape[0]):
        s = tw.load_tile(Q[b]) @ tw.load_tile(K[b]).T
        e = tw.exp(s - tw.row_max(s))
        tw.store_tile(P[b], e / tw.row_sum(e))


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_vectors_are_rows_of_products(config, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=n).astype(BF16) for n in (9, 20))
    found = outer.run(x, y, config=config, backend="emulator")
    assert (found.Y == np.outer(x.astype(np.float32), y).astype(BF16)).all()
    q, k, b = (rng.normal(size=n).astype(BF16) for n in (24, (17, 24), 17))
    found = scores.run(q, k, b, config=config, backend="emulator")
    assert found.verified and found.p.shape == (17,)
    queries, keys = (rng.normal(size=n).astype(BF16) for n in ((4, 32), (4, 16, 32)))
    found = attention_weights.run(queries, keys, config=config, backend="emulator")
    assert found.verified, found.problems
