"""Example 14. Attention of several heads from its weights: heads are columns, split and joined.

The compiler finds that all heads compute the same, and makes a loop over them.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


def head(q, k, v):
    """One head: softmax(q kᵀ / √d) v."""
    s = q @ k.T * q.shape[1] ** -0.5
    e = tw.exp(s - tw.row_max(s))
    return (e / tw.row_sum(e)).to(tw.bf16) @ v


@tw.kernel("X[M, C], W[C, T], P[C, C] -> Y[M, C]")
def multi_head(X, W, P, Y, heads=4):
    """Queries, keys and values are a third of X W each; all heads side by side times P."""
    product = (tw.load_tile(X) @ tw.load_tile(W)).to(tw.bf16)
    q, k, v = (tw.split_cols(each, heads) for each in tw.split_cols(product, 3))
    joined = tw.join_cols(*map(head, q, k, v)).to(tw.bf16)
    tw.store_tile(Y, joined @ tw.load_tile(P))


@multi_head.reference
def _(X, W, P, heads=4):
    def split(x):
        return x.reshape(len(x), heads, -1).swapaxes(0, 1)

    q, k, v = map(split, np.split(X @ W, 3, axis=1))
    s = q @ k.swapaxes(1, 2) * q.shape[2] ** -0.5
    e = np.exp(s - s.max(axis=2, keepdims=True))
    joined = (e / e.sum(axis=2, keepdims=True)) @ v
    return joined.swapaxes(0, 1).reshape(X.shape) @ P


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    shapes = (48, 64), (64, 192), (64, 64)
    x, w, p = (rng.normal(size=each).astype(ml_dtypes.bfloat16) for each in shapes)
    program = multi_head.compile("small", M=48, C=64, T=192, dtype=tw.bf16)
    # The loop over heads, behind the first product and before the last.
    print(program.ir("roll"))
    print(program.run(x, w, p, backend="emulator"))
