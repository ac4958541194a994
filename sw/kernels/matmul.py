"""Matrix multiplication tiled in m and n: C blocks from row panels of A and column panels of B."""

import sw.language as tw

__all__ = ["matmul"]


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def matmul(A, B, C, MM=4096, NN=256):
    """Multiply matrices; a row panel of A stays on chip while the panels of B are streamed."""
    M, N = C.shape
    for i in tw.metapipe(M, MM):
        a_tile = tw.load_tile(A[i, :])
        for j in tw.metapipe(N, NN):
            b_tile = tw.load_tile(B[:, j])
            c = tw.matmul(a_tile, b_tile, row_par=4)
            c_tile = tw.buffer(c)
            tw.store_tile(C[i, j], c_tile)


@matmul.reference
def _(A, B):
    return A @ B
