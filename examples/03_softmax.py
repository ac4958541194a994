"""Example 3. Softmax of rows: element math, functions and row statistics.

A statistic such as `tw.row_max` is a tile of one column, which broadcasts along its row. Lanes
beside the cells of a compute unit compute all of it; functions have the 16 significant bits of
the chip's tables.
"""

import ml_dtypes
import numpy as np

import tilewright as tw

__all__ = ["softmax"]


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax(X, Y):
    """Softmax of each row; any number of rows and columns."""
    M, N = X.shape
    for i in tw.metapipe(M):
        x = tw.load_tile(X[i, :])
        m = tw.row_max(x)
        e = tw.exp(x - m)
        r = tw.row_sum(e)
        tw.store_tile(Y[i, :], e / r)


@softmax.reference
def _(X):
    e = np.exp(X - X.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(37, 90)).astype(ml_dtypes.bfloat16)
    answer = softmax(scores, out=tw.fp32)
    error = np.abs(answer - softmax.reference(scores.astype(np.float64))).max()
    print(f"37 × 90: largest error against float64 {error:.2e}")
    program = softmax.compile("small", M=37, N=90, dtype=tw.bf16)
    # Each unit with its task; the lanes' formulas read x from the rows and keep two statistics.
    print(program.map_text())
    print(program.run(scores, backend="emulator"))
