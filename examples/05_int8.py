"""Example 5. int8 products with exact sums, stored as int32 or saturated to int8.

Every rounding is written down: a product of int8 tiles is int32, and only `.to` or a store makes
it narrower.
"""

import numpy as np

import tilewright as tw


@tw.kernel("A[M, K]: int8, B[K, N]: int8 -> C[M, N]")
def integers(A, B, C):
    """C = A B in int32, or saturated to the output's format."""
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, j])
            tw.store_tile(C[i, j], acc)


@integers.reference
def _(A, B):
    return A @ B


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (90, 130), dtype=np.int8)
    b = rng.integers(-4, 5, (130, 50), dtype=np.int8)
    sums = a.astype(int) @ b
    for out in (tw.int32, tw.int8):
        result = integers.run(a, b, config="small", backend="emulator", out=out)
        limits = np.iinfo(result.C.dtype)
        assert (result.C == sums.clip(limits.min, limits.max)).all()
        print(result)
