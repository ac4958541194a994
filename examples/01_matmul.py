"""Example 1. A product of matrices in pipelined loops, as a chip computes it.

`tw.metapipe(M)` divides M into blocks, of a size that the compiler chooses; `tw.metapipe(M, 64)`
gives one. The last block may be shorter. An index such as `i` selects a tile of a tensor. While
one tile is multiplied, the next is loaded and the last is stored.
"""

import ml_dtypes
import numpy as np

import tilewright as tw


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def product(A, B, C):
    """C = A B, with any sizes."""
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, j])
            tw.store_tile(C[i, j], acc)


@product.reference
def _(A, B):
    return A @ B


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    a = rng.normal(size=(150, 100)).astype(ml_dtypes.bfloat16)
    b = rng.normal(size=(100, 70)).astype(ml_dtypes.bfloat16)

    # As a function of numpy arrays: the golden result, with the machine's formats and roundings.
    c = product(a, b, out=tw.fp32)
    print(
        "largest error of golden against numpy:", np.abs(c - a.astype("f4") @ b.astype("f4")).max()
    )

    # As a program of the chip `small`: backend="rtl" runs it on the generated Verilog.
    result = product.run(a, b, config="small", backend="emulator")
    print(result)
