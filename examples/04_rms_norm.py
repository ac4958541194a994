"""Example 4. Statistics of rows, helper functions and options of a kernel.

A helper is a plain function: it is traced where it is called. A parameter with a default is an
option; its value is part of the program and is given with the call, or by `--set eps=0.001`.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


def normed(x, g, eps):
    """Rows of x, divided by their root of the mean square, times g."""
    return x * tw.rsqrt(tw.row_mean(x * x) + eps) * g


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def norm(X, g, Y, eps=1e-5):
    """The RMS norm of each row."""
    M, _ = X.shape
    for i in tw.metapipe(M):
        tw.store_tile(Y[i, :], normed(tw.load_tile(X[i, :]), tw.load_tile(g), eps))


@norm.reference
def _(X, g, eps=1e-5):
    return X / np.sqrt((X * X).mean(axis=1, keepdims=True) + eps) * g


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    x = rng.normal(size=(64, 200)).astype(ml_dtypes.bfloat16)
    g = rng.normal(size=200).astype(ml_dtypes.bfloat16)
    print(norm.run(x, g, config="small", backend="emulator", eps=0.001))
    # What the compiler made of it: stages, and the streams that join them.
    print(norm.compile("small", M=64, N=200, dtype=tw.bf16).ir("graph"))
