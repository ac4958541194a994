"""Product of two transposed matrices, C = Aᵀ·Bᵀ: columns of A times rows of B."""

import sw.language as tw

__all__ = ["matmul_tt"]


@tw.kernel("A[K, M], B[N, K] -> C[M, N]")
def matmul_tt(A, B, C, MM=4096, NN=256):
    """Multiply transposes; a column panel of A stays on chip while rows of B are streamed."""
    M, N = C.shape
    for i in tw.metapipe(M, MM):
        a_tile = tw.load_tile(A[:, i])
        for j in tw.metapipe(N, NN):
            b_tile = tw.load_tile(B[j, :])
            c = a_tile.T @ b_tile.T
            tw.store_tile(C[i, j], c)


@matmul_tt.reference
def _(A, B):
    return A.T @ B.T
