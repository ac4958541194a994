"""Example 7. FlashAttention: one pass over the keys, any number of them, in one image.

Maximum, sum and result of each query are carried from block to block. The compiler finds this by
what is computed, and joins both products by the softmax circuits of the compute units: no score
leaves them.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> O[M, D]")
def flash(Q, K, V, O):
    """Causal attention: a query sees the keys up to its own number, the last query all of them."""
    (M, D), S = Q.shape, K.shape[0]
    for i in tw.metapipe(M):
        q = tw.load_tile(Q[i, :])
        m, l, o = tw.full(q.rows, 1, -(2.0**20)), tw.zeros(q.rows, 1), tw.zeros(q.rows, D)
        for j in tw.metapipe(S, until=i.stop + (S - M)):
            k, v = tw.load_tile(K[j, :]), tw.load_tile(V[j, :])
            seen = tw.row_index(i) + (S - M) >= tw.col_index(j)
            s = tw.where(seen, q @ k.T * D**-0.5, -tw.inf)
            top = tw.maximum(m, tw.row_max(s))
            p, fade = tw.exp(s - top), tw.exp(m - top)
            l = l * fade + tw.row_sum(p)
            o = o * fade + p.to(tw.bf16) @ v
            m = top
        tw.store_tile(O[i, :], o / l)


@flash.reference
def _(Q, K, V):
    (M, D), S = Q.shape, len(K)
    s = np.where(np.tri(M, S, S - M) > 0, Q @ K.T * D**-0.5, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ V / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(256, 64)).astype(ml_dtypes.bfloat16) for _ in range(3))
    print(flash.run(q, k, v, config="small", backend="emulator"))
