"""Sum of two matrices, element by element."""

import sw.language as tw

__all__ = ["add"]


@tw.kernel("A[M, N], B[M, N] -> C[M, N]")
def add(A, B, C):
    """Elementwise sum of two matrices, with one rounding."""
    M, N = A.shape
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            tw.store_tile(C[i, j], tw.load_tile(A[i, j]) + tw.load_tile(B[i, j]))


@add.reference
def _(A, B):
    return A + B
