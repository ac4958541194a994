"""Example 10. A decoder layer of a Llama: parts in one launch list, and caches that they fill.

The layer stores the key and value of a token in caches in memory, behind those of `past` others,
and attends to all of them. The next token needs another program: `with_options` compiles it.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


def normed(x, gain):
    """RMSNorm of each row."""
    x = x.to(tw.fp32)
    return (x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * tw.load_tile(gain)).to(tw.bf16)


def attend(q, K, V):
    """Attention to all keys, as in example 7."""
    m, l, o = tw.full(q.rows, 1, -(2.0**20)), tw.zeros(q.rows, 1), tw.zeros(q.rows, V.shape[1])
    for j in tw.metapipe(K.shape[0]):
        s = q @ tw.load_tile(K[j, :]).T * K.shape[1] ** -0.5
        top = tw.maximum(m, tw.row_max(s))
        p, fade = tw.exp(s - top), tw.exp(m - top)
        l, o = l * fade + tw.row_sum(p), o * fade + p.to(tw.bf16) @ tw.load_tile(V[j, :])
        m = top
    return o / l


@tw.kernel("""X[M, D], n1[D], Wq[H, D, E], Wk[H, D, E], Wv[H, D, E], Wo[H, E, D], n2[D], Wg[D, F],
              Wu[D, F], Wd[F, D], Kc[H, S, E], Vc[H, S, E] -> Y[M, D], Kc, Vc""")
def layer(X, n1, Wq, Wk, Wv, Wo, n2, Wg, Wu, Wd, Kc, Vc, Y, past=0):
    """One token; a caller that wants positions turns the halves of queries and keys by `rope`."""
    x, end = tw.load_tile(X), past + X.shape[0]
    n, y = normed(x, n1), tw.zeros(*X.shape)
    for h in tw.each(Wq.shape[0]):
        tw.store_tile(Kc[h, past:end, :], n @ tw.load_tile(Wk[h]))
        tw.store_tile(Vc[h, past:end, :], n @ tw.load_tile(Wv[h]))
        q = (n @ tw.load_tile(Wq[h])).to(tw.bf16)
        y += attend(q, Kc[h, :end, :], Vc[h, :end, :]).to(tw.bf16) @ tw.load_tile(Wo[h])
    x = (x.to(tw.fp32) + y).to(tw.bf16)
    n = normed(x, n2)
    inner = tw.silu(n @ tw.load_tile(Wg)) * (n @ tw.load_tile(Wu))
    tw.store_tile(Y, x.to(tw.fp32) + inner.to(tw.bf16) @ tw.load_tile(Wd))


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    sizes = {"M": 1, "D": 32, "H": 2, "E": 16, "F": 64, "S": 32}
    given = {}
    for each in layer.signature.inputs:
        shape = [sizes[dim] for dim in each.dims]
        given[each.name] = (rng.normal(size=shape) / 4).astype(ml_dtypes.bfloat16)
    program = layer.compile("small", **sizes, dtype=tw.bf16)
    print(program.report())
    for past in range(2):
        result = program.with_options(past=past).run(*given.values(), backend="emulator")
        given |= {"X": result.Y, "Kc": result.Kc, "Vc": result.Vc}
        print(result)
