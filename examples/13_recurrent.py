"""Example 13. A loop that carries tiles: a recurrent network (LSTM), step by step.

The state h and the cells c of step t are read by step t + 1. Each step runs as launches of the same
images, and what it carries passes through memory. All steps are one launch list.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel(
    "X[T, B, D], W[D, G], U[H, G], b[G] -> Y[T, B, H]",
    sizes={"T": 12, "B": 16, "D": 48, "H": 32, "G": 128},
)
def lstm(X, W, U, b, Y):
    """States of B sequences; the four gates are G = 4 H columns."""
    w, u, bias = tw.load_tile(W), tw.load_tile(U), tw.load_tile(b)
    h, c = (tw.zeros(X.shape[1], U.shape[0], form) for form in (X.dtype, tw.fp32))
    for t in tw.each(X.shape[0]):
        gates = tw.load_tile(X[t]) @ w + h @ u + bias
        i, f, g, o = tw.split_cols(gates, 4)
        c = tw.sigmoid(f) * c + tw.sigmoid(i) * tw.tanh(g)
        h = (tw.sigmoid(o) * tw.tanh(c)).to(X.dtype)
        tw.store_tile(Y[t], h)


@lstm.reference
def _(X, W, U, b):
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    h = c = np.zeros((X.shape[1], U.shape[0]))
    states = []
    for x in X:
        i, f, g, o = np.split(x @ W + h @ U + b, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    shapes = [tuple(lstm.sizes[dim] for dim in dims) for dims in ("TBD", "DG", "HG", "G")]
    inputs = [(rng.normal(size=shape) / 2).astype(ml_dtypes.bfloat16) for shape in shapes]
    print(lstm.run(*inputs, config="small", backend="emulator"))
