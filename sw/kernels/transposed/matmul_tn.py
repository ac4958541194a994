"""Product with the left matrix transposed, C = Aᵀ·B: columns of A times columns of B."""

import sw.language as tw

__all__ = ["matmul_tn"]


@tw.kernel("A[K, M], B[K, N] -> C[M, N]")
def matmul_tn(A, B, C, MM=4096, NN=256):
    """Multiply a transpose; a column panel of A stays on chip while columns of B are streamed."""
    M, N = C.shape
    for i in tw.metapipe(M, MM):
        a_tile = tw.load_tile(A[:, i])
        for j in tw.metapipe(N, NN):
            b_tile = tw.load_tile(B[:, j])
            c = a_tile.T @ b_tile
            tw.store_tile(C[i, j], c)


@matmul_tn.reference
def _(A, B):
    return A.T @ B
