"""Product of two matrices added to a third: a layer with its residual."""

import sw.language as tw

__all__ = ["residual"]


@tw.kernel("A[M, K], B[K, N], R[M, N] -> C[M, N]")
def residual(A, B, R, C):
    """Multiply matrices and add the residual to each element."""
    M, N = C.shape
    for i in tw.metapipe(M):
        a = tw.load_tile(A[i, :])
        for j in tw.metapipe(N):
            c = a @ tw.load_tile(B[:, j])
            tw.store_tile(C[i, j], c + tw.load_tile(R[i, j]))


@residual.reference
def _(A, B, R):
    return A @ B + R
