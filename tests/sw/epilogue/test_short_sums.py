"""Element math behind a product of few terms, on cells of two columns."""

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel


@tw.kernel("Q[M, D], K[S, D] -> C[M, S]: fp32")
def capped(Q, K, C):
    for i in tw.metapipe(Q.shape[0]):
        for j in tw.metapipe(K.shape[0]):
            s = tw.load_tile(Q[i, :]) @ tw.load_tile(K[j, :]).T
            tw.store_tile(C[i, j], tw.tanh(s * (1 / 30)) * 30.0)


@pytest.mark.parametrize("terms", [2, 8, 16])
def test_joined_phases_have_packets_of_whole_strips(terms):
    """PCUs behind the product get a row of two sums at a time: 190,000 cycles in joined phases."""
    dims = {"M": 128, "S": 128, "D": terms}
    assert compile_kernel(capped, named["tiny"], dims=dims, dtype=bf16).predicted_cycles <= 34_000
