"""Reductions along blocks, whose size the compiler chooses: refused if they are stored."""

import pytest

import tilewright as tw
from sw.passes.check import check


def of_rows(A, B):
    for i in tw.metapipe(A.shape[0]):
        x = tw.load_tile(A[i, :])
        tw.store_tile(B[i, :], x - tw.col_max(x))


def of_columns(A, B):
    for j in tw.metapipe(A.shape[1], 32):
        x = tw.load_tile(A[:, j])
        tw.store_tile(B[:, j], x * tw.rsqrt(tw.row_sum(x * x)))


def of_a_product(A, B):
    for i in tw.metapipe(A.shape[0]):
        x = tw.load_tile(A[i, :]) @ tw.load_tile(A)
        tw.store_tile(B[i, :], x - tw.col_max(x))


def of_the_block_before(A, B):
    """The maximum of one block is carried to the next, and both are stored."""
    top = tw.full(1, A.shape[1], 0.0)
    for i in tw.metapipe(A.shape[0]):
        x = tw.load_tile(A[i, :])
        top = tw.col_max(x)
        tw.store_tile(B[i, :], x - top)


@pytest.mark.parametrize(
    ("function", "name", "index", "whole"),
    [
        (of_rows, "col_max", "i", "all rows, as `X[:, j]`"),
        (of_columns, "row_sum", "j", "all columns, as `X[i, :]`"),
        (of_a_product, "col_max", "i", "all rows, as `X[:, j]`"),
        (of_the_block_before, "col_max", "i", "all rows, as `X[:, j]`"),
    ],
)
def test_one_that_is_stored_for_each_block_is_refused(function, name, index, whole):
    kernel = tw.kernel("A[M, M] -> B[M, M]")(function)
    with pytest.raises(tw.ProgramError) as caught:
        check(kernel.trace(dtype=tw.bf16, M=64))
    assert caught.value.kind == "loop" and caught.value.value == name
    assert f"`{name}` of each block of `{index}` is stored" in caught.value.message
    assert whole in caught.value.message


def whole_axis(A, B):
    for j in tw.metapipe(A.shape[1]):
        x = tw.load_tile(A[:, j])
        tw.store_tile(B[:, j], x - tw.col_max(x))


def carried(A, B):
    """The maxima of all blocks, stored in a loop of their own."""
    top = tw.full(1, A.shape[1], 0.0)
    for i in tw.metapipe(A.shape[0]):
        top = tw.maximum(top, tw.col_max(tw.load_tile(A[i, :])))
    for i in tw.metapipe(A.shape[0]):
        tw.store_tile(B[i, :], tw.load_tile(A[i, :]) - top)


@pytest.mark.parametrize("function", [whole_axis, carried])
def test_one_of_a_whole_axis_may_be_stored(function):
    check(tw.kernel("A[M, M] -> B[M, M]")(function).trace(dtype=tw.bf16, M=64))
