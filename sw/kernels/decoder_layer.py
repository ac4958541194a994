"""Decoder layer of a Llama: attention with a cache of keys and values, and a gated perceptron."""

import numpy as np

import sw.language as tw
from sw.kernels.flash_attention import attend, heads_per_group, weighted

__all__ = ["decoder_layer", "layer"]


def _normed(x, gain, eps):
    x = x.to(tw.fp32)
    return (x * tw.rsqrt(tw.row_mean(x * x) + eps) * tw.load_tile(gain)).to(tw.bf16)


def _turned(x, cos, sin):
    x, c, s = (each.to(tw.fp32) for each in (x, tw.load_tile(cos), tw.load_tile(sin)))
    a, b = tw.split_cols(x, 2)
    return (x * c + tw.join_cols(-b, a) * s).to(tw.bf16)


def layer(x, n1, Wq, Wk, Wv, cos, sin, Wo, n2, Wg, Wu, Wd, Kc, Vc, past, eps):
    """Apply a layer to the tokens x, in fp32, and store their keys and values behind the others."""
    H, G, E, M = Wq.shape[0], Kc.shape[0], Wq.shape[2], x.rows
    n, y = _normed(x, n1, eps), tw.zeros(x.rows, x.cols)
    for g in tw.each(G):
        k, v = n @ tw.load_tile(Wk[g]), n @ tw.load_tile(Wv[g])
        tw.store_tile(Kc[g, past : past + M, :], _turned(k.to(tw.bf16), cos, sin))
        tw.store_tile(Vc[g, past : past + M, :], v)
        K, V = Kc[g, : past + M, :], Vc[g, : past + M, :]
        for r in tw.each(heads_per_group(H, G)):
            h = g * (H // G) + r
            q = _turned((n @ tw.load_tile(Wq[h])).to(tw.bf16), cos, sin)
            o = attend(q, K, V, E**-0.5, at=tw.row_index(M) + past)
            y += o.to(tw.bf16) @ tw.load_tile(Wo[h])
    x = (x.to(tw.fp32) + y).to(tw.bf16)
    n = _normed(x, n2, eps)
    gate, up = n @ tw.load_tile(Wg), n @ tw.load_tile(Wu)
    down = (tw.silu(gate) * up).to(tw.bf16) @ tw.load_tile(Wd)
    return x.to(tw.fp32) + down


@tw.kernel(
    "X[M, D], n1[D], Wq[H, D, E], Wk[G, D, E], Wv[G, D, E], cos[M, E], sin[M, E], Wo[H, E, D], "
    "n2[D], Wg[D, F], Wu[D, F], Wd[F, D], Kc[G, S, E], Vc[G, S, E] -> Y[M, D], Kc, Vc",
    sizes={"M": 4, "D": 64, "H": 4, "E": 16, "G": 2, "F": 128, "S": 64},
)
def decoder_layer(X, n1, Wq, Wk, Wv, cos, sin, Wo, n2, Wg, Wu, Wd, Kc, Vc, Y, past=0, eps=1e-5):
    """Apply a layer to M tokens, whose keys and values are stored behind `past` others.

    Kc and Vc are the caches, of which past + M rows are used. Each token sees those up to itself.
    """
    weights = n1, Wq, Wk, Wv, cos, sin, Wo, n2, Wg, Wu, Wd
    tw.store_tile(Y, layer(tw.load_tile(X), *weights, Kc, Vc, past, eps))


@decoder_layer.reference
def _(X, n1, Wq, Wk, Wv, cos, sin, Wo, n2, Wg, Wu, Wd, Kc, Vc, past=0, eps=1e-5):
    def normed(x, gain):
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * gain

    def turned(x):
        a, b = np.split(x, 2, axis=2)
        return x * cos + np.concatenate([-b, a], axis=2) * sin

    n, new, seen = normed(X, n1), slice(past, past + len(X)), past + len(X)
    Kc, Vc = Kc.copy(), Vc.copy()
    Kc[:, new], Vc[:, new] = turned(n @ Wk), n @ Wv
    K, V = (np.repeat(c[:, :seen], len(Wq) // len(c), axis=0) for c in (Kc, Vc))
    s = turned(n @ Wq) @ K.transpose(0, 2, 1) * K.shape[2] ** -0.5
    s = np.where(np.arange(seen) <= np.arange(past, seen)[:, np.newaxis], s, -np.inf)
    e = np.exp(s - s.max(axis=2, keepdims=True))
    x = X + (weighted(e, V) / e.sum(axis=2, keepdims=True) @ Wo).sum(axis=0)
    n = normed(x, n2)
    gate = n @ Wg
    return Kc, Vc, x + gate / (1 + np.exp(-gate)) * (n @ Wu) @ Wd
