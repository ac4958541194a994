"""Example 6. Attention as in a lecture: two products with a softmax of whole rows between them.

The compiler computes it over blocks of keys, and no score leaves the compute units.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel("Q[M, D], K[S, D], V[S, D] -> O[M, D]")
def attention(Q, K, V, O):
    """Softmax(Q Kᵀ / √D) V."""
    M, D = Q.shape
    for i in tw.metapipe(M):
        s = tw.load_tile(Q[i, :]) @ tw.load_tile(K).T * D**-0.5
        e = tw.exp(s - tw.row_max(s))
        p = e / tw.row_sum(e)
        tw.store_tile(O[i, :], p.to(tw.bf16) @ tw.load_tile(V))


@attention.reference
def _(Q, K, V):
    s = Q @ K.T * Q.shape[1] ** -0.5
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ V / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    shapes = (64, 32), (80, 32), (80, 32)
    q, k, v = (rng.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in shapes)
    program = attention.compile("small", M=64, S=80, D=32, dtype=tw.bf16)
    # Pairs of PCUs: one sends exponentials of its scores, the other multiplies values by them.
    print(program.report())
    print(program.run(q, k, v, backend="emulator"))
