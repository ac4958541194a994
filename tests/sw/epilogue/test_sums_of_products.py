"""Sums of two products: a part each, of which the second adds the first one's finished sum."""

import numpy as np
import pytest

import tilewright as tw


@tw.kernel("X[M, K], W[K, N], A[K, R], B[R, N] -> Y[M, N]")
def adapted(X, W, A, B, Y):
    """A product, and one of low rank that is added to it (LoRA)."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        h = (x @ tw.load_tile(A)).to(tw.bf16)
        for j in tw.metapipe(W.shape[1]):
            tw.store_tile(Y[i, j], x @ tw.load_tile(W[:, j]) + h @ tw.load_tile(B[:, j]))


@adapted.reference
def _(X, W, A, B):
    return X @ W + X @ A @ B


@tw.kernel("X[M, K], H[M, K], W[K, N], U[K, N], b[N] -> Y[M, N]")
def recurrent(X, H, W, U, b, Y):
    """A step of a recurrent network."""
    for i in tw.metapipe(X.shape[0]):
        x, h = tw.load_tile(X[i, :]), tw.load_tile(H[i, :])
        for j in tw.metapipe(W.shape[1]):
            sums = x @ tw.load_tile(W[:, j]) + h @ tw.load_tile(U[:, j])
            tw.store_tile(Y[i, j], tw.tanh(sums + tw.load_tile(b[j])))


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def four_pieces(A, B, C):
    """A sum over Python's own loop."""
    acc, step = tw.zeros(*C.shape), A.shape[1] // 4
    for k in range(0, 4 * step, step):
        acc += tw.load_tile(A[:, k : k + step]) @ tw.load_tile(B[k : k + step, :])
    tw.store_tile(C, acc)


@pytest.mark.few(3)
@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", [adapted, recurrent], ids=lambda each: each.name)
def test_two_products_are_added(kernel, chip, seed):
    rng = np.random.default_rng(seed)
    names = sorted({dim for each in kernel.signature.arguments for dim in each.dims})
    sizes = {name: int(rng.integers(1, 60)) for name in names}
    arrays = [
        rng.normal(size=[sizes[dim] for dim in each.dims]).astype(tw.bf16.dtype)
        for each in kernel.signature.inputs
    ]
    found = kernel.run(*arrays, config=chip, backend="emulator")
    assert found.verified, found.problems


def test_pieces_of_a_sum_are_finished_sums(seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-9, 9, shape).astype(tw.bf16.dtype) for shape in ((20, 32), (32, 24)))
    found = four_pieces.run(a, b, config="small", backend="emulator", out=tw.fp32)
    assert found.verified, found.problems
    assert (found.C == a.astype(np.float32) @ b.astype(np.float32)).all()
