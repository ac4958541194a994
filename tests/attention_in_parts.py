"""Attention that keeps whole rows of scores, and so takes several parts."""

import sw.language as tw
from sw.kernels.attention import attention

__all__ = ["attention_in_parts"]


@tw.kernel("Q[H, M, D], K[H, S, D], V[H, S, D] -> Y[H, M, D]")
def attention_in_parts(Q, K, V, Y, exact=True):
    attention.function(Q, K, V, Y)
