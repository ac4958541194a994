"""Convolution of images whose channels are innermost: a product summed over rows and columns."""

import numpy as np

import sw.language as tw
from hw.arch.errors import BadInputError

__all__ = ["conv2d"]


@tw.kernel(
    "X[N, H, W, C], F[R, S, C, K] -> Y[N, P, Q, K]",
    sizes={"N": 1, "H": 10, "W": 34, "C": 16, "R": 3, "S": 3, "K": 32, "P": 8, "Q": 32},
)
def conv2d(X, F, Y):
    """Convolve N images of H x W pixels by K filters of R x S, with stride 1 and without padding.

    A row of pixels, shifted by r and s, is the operand of a product; their sum is one product.
    """
    (N, H, W, _), (R, S, _, _), (_, P, Q, K) = X.shape, F.shape, Y.shape
    for name, size, needed in (("H", H, P + R - 1), ("W", W, Q + S - 1)):
        if size != needed:
            rule = "filter and result together less one (stride 1, no padding)"
            raise BadInputError(f"{name} must be {needed}, {rule}, not {size}")
    for n in tw.each(N):
        for p in tw.each(P):
            for q in tw.metapipe(Q):
                for k in tw.metapipe(K):
                    acc = tw.zeros(q, k)
                    for r in tw.each(R):
                        for s in tw.each(S):
                            x = tw.load_tile(X[n, p + r, s : s + Q][q, :])
                            acc += x @ tw.load_tile(F[r, s, :, k])
                    tw.store_tile(Y[n, p, q, k], acc)


@conv2d.reference
def _(X, F):
    R, S = F.shape[:2]
    P, Q = X.shape[1] - R + 1, X.shape[2] - S + 1
    shifts = np.ndindex(R, S)
    return sum(X[:, r : r + P, s : s + Q] @ F[r, s] for r, s in shifts)
