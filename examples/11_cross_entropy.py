"""Example 11. Logarithms: the cross entropy of classes, as a loss for each row.

The loss of a row is log(sum of exp(x)) - x[class], without the last term if no column has that
number. The compiler divides it into parts: two read the rows, and the last one takes the
logarithms of all sums at once.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel("X[M, N], classes[M, 1]: int32 -> L[M, 1]: fp32")
def cross_entropy(X, classes, L):
    """The cross entropy of each row's softmax and its class."""
    M, _ = X.shape
    for i in tw.metapipe(M):
        x, c = tw.load_tile(X[i, :]), tw.load_tile(classes[i, :])
        most = tw.row_max(x)
        own = tw.row_sum(tw.where(tw.col_index(x) == c, x, 0.0))
        tw.store_tile(L[i, :], tw.log(tw.row_sum(tw.exp(x - most))) + (most - own))


@cross_entropy.reference
def _(X, classes):
    own = np.where(np.arange(X.shape[1]) == classes, X, 0).sum(axis=1, keepdims=True)
    return np.log(np.exp(X).sum(axis=1, keepdims=True)) - own


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    x = rng.normal(size=(64, 200)).astype(ml_dtypes.bfloat16)
    classes = rng.integers(0, 200, (64, 1)).astype(np.int32)
    print(cross_entropy.run(x, classes, config="small", backend="emulator"))
