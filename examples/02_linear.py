"""Example 2. A layer in one image: product, bias, activation and residual.

What follows a product of its tiles is computed on the way to memory, by lanes in the same compute
units or in units behind them. The sums never leave the chip.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel("X[M, K], W[K, N], b[N], R[M, N] -> Y[M, N]")
def layer(X, W, b, R, Y):
    """Y = R + relu(X W + b)."""
    (M, K), N = X.shape, Y.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(X[i, k]) @ tw.load_tile(W[k, j])
            h = tw.maximum(acc + tw.load_tile(b[j]), 0.0)
            tw.store_tile(Y[i, j], tw.load_tile(R[i, j]) + h)


@layer.reference
def _(X, W, b, R):
    return R + np.maximum(X @ W + b, 0)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    shapes = (100, 60), (60, 90), (90,), (100, 90)
    x, w, b, r = (rng.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in shapes)
    program = layer.compile("small", M=100, K=60, N=90, dtype=tw.bf16)
    print(program.map_text())
    print(program.run(x, w, b, r, backend="emulator"))
