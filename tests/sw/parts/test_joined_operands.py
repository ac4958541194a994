"""Loaded tiles that are joined and then taken whole: they pass through memory as one tile."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, int8
from sw.compiler import compile_kernel
from tests.sw.stages.region_runs import operand


@tw.kernel("A[M, D], B[M, E], W[C, N] -> Y[M, N]: bf16")
def linear(A, B, W, Y):
    for i in tw.metapipe(A.shape[0]):
        x = tw.join_cols(tw.load_tile(A[i, :]), tw.load_tile(B[i, :]))
        tw.store_tile(Y[i, :], x @ tw.load_tile(W))


@tw.kernel("A[M, D], B[M, E], W[C, N] -> Y[M, N]: int32")
def linear_int8(A, B, W, Y):
    x = tw.join_cols(tw.load_tile(A), tw.load_tile(B))
    tw.store_tile(Y, x @ tw.load_tile(W))


@tw.kernel("A[M, D], B[M, D] -> Y[M, C]: bf16")
def softmax(A, B, Y):
    for i in tw.metapipe(A.shape[0]):
        x = tw.join_cols(tw.load_tile(A[i, :]), tw.load_tile(B[i, :]))
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e))


@tw.kernel("A[M, D], B[M, D], g[C] -> Y[M, C]: bf16")
def norm(A, B, g, Y):
    for i in tw.metapipe(A.shape[0]):
        x = tw.join_cols(tw.load_tile(A[i, :]), tw.load_tile(B[i, :])).to(tw.fp32)
        tw.store_tile(Y[i, :], x * tw.rsqrt(tw.row_sum(x * x) + 1e-6) * tw.load_tile(g))


@tw.kernel("A[M, D], B[M, D] -> Y[C, M]: bf16")
def turned(A, B, Y):
    tw.store_tile(Y, tw.join_cols(tw.load_tile(A), tw.load_tile(B)).T)


@tw.kernel("Q[M, D], P[M, E], K[S, D], R[S, E], V[S, J] -> Y[M, J]: bf16")
def attention(Q, P, K, R, V, Y):
    """Queries and keys of two parts, one of which is rotated, as in multi-head latent attention."""
    k, v = tw.join_cols(tw.load_tile(K), tw.load_tile(R)), tw.load_tile(V)
    for i in tw.metapipe(Q.shape[0]):
        s = tw.join_cols(tw.load_tile(Q[i, :]), tw.load_tile(P[i, :])) @ k.T * 0.1
        e = tw.exp(s - tw.row_max(s))
        tw.store_tile(Y[i, :], (e.to(tw.bf16) @ v) / tw.row_sum(e))


@tw.kernel("X[B, D], H[B, E], C[B, E]: fp32, W[J, G], b[G] -> Hn[B, E]: bf16, Cn[B, E]: fp32")
def lstm(X, H, C, W, b, Hn, Cn):
    gates = tw.join_cols(tw.load_tile(X), tw.load_tile(H)) @ tw.load_tile(W) + tw.load_tile(b)
    i, f, o, u = tw.split_cols(gates, 4)
    cell = tw.sigmoid(f) * tw.load_tile(C) + tw.sigmoid(i) * tw.tanh(u)
    tw.store_tile(Cn, cell)
    tw.store_tile(Hn, (tw.sigmoid(o) * tw.tanh(cell)).to(tw.bf16))


CASES = {
    "linear": (linear, {"M": 40, "D": 24, "E": 16, "C": 40, "N": 33}, bf16),
    "ragged": (linear, {"M": 7, "D": 16, "E": 5, "C": 21, "N": 20}, bf16),
    "int8": (linear_int8, {"M": 20, "D": 32, "E": 16, "C": 48, "N": 33}, int8),
    "softmax": (softmax, {"M": 21, "D": 16, "C": 32}, bf16),
    "norm": (norm, {"M": 33, "D": 24, "C": 48}, bf16),
    "turned": (turned, {"M": 16, "D": 24, "C": 48}, bf16),
    "attention": (attention, {"M": 20, "S": 37, "D": 32, "E": 16, "J": 32}, bf16),
    "lstm": (lstm, {"B": 5, "D": 24, "E": 16, "J": 40, "G": 64}, bf16),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_joined_tiles_are_taken_whole(case, chip, seed):
    kernel, sizes, dtype = case
    rng = np.random.default_rng(seed)
    program = kernel.trace(dtype=dtype, **sizes)
    inputs = [
        operand(rng, each.type.shape, each.type.format)
        for each in program.tensors
        if each.type.role.value == "in"
    ]
    # Sizes of results alone are given; the others are those of the arrays.
    known = {name for each in kernel.signature.arguments[: len(inputs)] for name in each.dims}
    own = {name: size for name, size in sizes.items() if name not in known}
    result = kernel.run(*inputs, config=chip, backend="emulator", **own)
    assert result.verified, result.problems


def test_attention_of_joined_heads_is_one_part_behind_the_joins():
    sizes = {"M": 64, "S": 64, "D": 64, "E": 32, "J": 64}
    found = compile_kernel(attention, named["small"], dims=sizes, dtype=bf16)
    assert [each.softmax is not None for each in found.parts] == [*4 * [False], True]
