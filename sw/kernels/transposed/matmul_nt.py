"""Product with the right matrix transposed, C = A·Bᵀ: rows of A times rows of B."""

import sw.language as tw

__all__ = ["matmul_nt"]


@tw.kernel("A[M, K], B[N, K] -> C[M, N]")
def matmul_nt(A, B, C, MM=4096, NN=256):
    """Multiply by a transpose; a row panel of A stays on chip while rows of B are streamed."""
    M, N = C.shape
    for i in tw.metapipe(M, MM):
        a_tile = tw.load_tile(A[i, :])
        for j in tw.metapipe(N, NN):
            b_tile = tw.load_tile(B[j, :])
            c = a_tile @ b_tile.T
            tw.store_tile(C[i, j], c)


@matmul_nt.reference
def _(A, B):
    return A @ B.T
