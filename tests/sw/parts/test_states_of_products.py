"""States that products change and iterations read, as of linear attention; constant operands."""

import numpy as np
import pytest

import tilewright as tw
from hw.numeric.formats import bf16


@tw.kernel("Q[N, C, D], K[N, C, D], V[N, C, E] -> Y[N, C, E]")
def linear_attention(Q, K, V, Y):
    """Chunks of queries, each with the sum of all earlier k.T @ v."""
    state = tw.zeros(Q.shape[2], V.shape[2], tw.fp32)
    for n in tw.each(Q.shape[0]):
        q, k, v = (tw.load_tile(each[n]) for each in (Q, K, V))
        tw.store_tile(Y[n], q @ state.to(tw.bf16))
        state = state + k.T @ v


@linear_attention.reference
def _(Q, K, V):
    sums = np.cumsum(K.transpose(0, 2, 1) @ V, axis=0)
    return np.concatenate([np.zeros_like(Q[:1] @ sums[:1]), Q[1:] @ sums[:-1]])


@tw.kernel("K[N, C, D], V[N, C, E] -> S[N, D, E]: fp32")
def prefix_sums(K, V, S):
    """The state itself, stored behind each chunk."""
    state = tw.zeros(K.shape[2], V.shape[2], tw.fp32)
    for n in tw.each(K.shape[0]):
        state = state + tw.load_tile(K[n]).T @ tw.load_tile(V[n])
        tw.store_tile(S[n], state)


@prefix_sums.reference
def _(K, V):
    return np.cumsum(K.transpose(0, 2, 1) @ V, axis=0)


@tw.kernel("V[C, D] -> Y[1, D]: fp32")
def means(V, Y):
    count = V.shape[0]
    tw.store_tile(Y, tw.full(1, count, 1 / count, tw.bf16) @ tw.load_tile(V))


@means.reference
def _(V):
    return V.mean(axis=0, keepdims=True) * (np.float64(bf16.dtype.type(1 / len(V))) * len(V))


@tw.kernel("Q[C, D] -> Y[C, D]: fp32")
def of_zeros(Q, Y):
    size = Q.shape[1]
    tw.store_tile(Y, tw.load_tile(Q) @ tw.zeros(size, size, tw.fp32).to(tw.bf16))


@of_zeros.reference
def _(Q):
    return np.zeros_like(Q)


@pytest.mark.few(2)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize(
    "kernel", [linear_attention, prefix_sums, means, of_zeros], ids=lambda each: each.name
)
def test_states_and_constants_equal_golden(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    chunks, sizes = draw.integers(2, 5), draw.integers(1, 40, 3)
    shapes = {
        linear_attention: ((chunks, *sizes[:2]), (chunks, *sizes[:2]), (chunks, *sizes[::2])),
        prefix_sums: ((chunks, *sizes[:2]), (chunks, *sizes[::2])),
    }.get(kernel, (sizes[:2],))
    values = [draw.normal(size=each).astype(bf16.dtype) for each in shapes]
    found = kernel.run(*values, config=chip, backend="emulator")
    assert found.verified, found.problems


def test_a_sum_that_is_read_is_rounded_in_each_iteration():
    """Other than a sum over blocks, which goes on in accumulators."""
    draw = np.random.default_rng(3)
    k, v = (draw.normal(size=(3, 9, 4)).astype(bf16.dtype) for _ in range(2))
    state, found = np.zeros((4, 4), np.float32), prefix_sums.run(k, v, backend="golden")
    for n in range(3):
        product = np.zeros((4, 4), np.float32)
        for row in range(9):
            product += np.outer(k[n, row].astype(np.float32), v[n, row].astype(np.float32))
        state = state + product
        assert np.array_equal(found.outputs["S"][n], state)
