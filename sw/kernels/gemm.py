"""Matrix multiplication tiled in m, n and k; partial sums are carried over the blocks of k."""

import sw.language as tw

__all__ = ["gemm"]


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def gemm(A, B, C):
    """Multiply matrices block by block; the loop over k carries the partial sums."""
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                a, b = tw.load_tile(A[i, k]), tw.load_tile(B[k, j])
                acc += a @ b
            tw.store_tile(C[i, j], acc)


@gemm.reference
def _(A, B):
    return A @ B
