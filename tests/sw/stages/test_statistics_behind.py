"""A statistic beside tiles that another lane program computes: it is sent once, they are many."""

import numpy as np
import pytest

import tilewright as tw
from hw.numeric.formats import bf16, fp32
from tests.sw.stages.region_runs import CHIPS, side, verify


@tw.kernel("A[M, N], B[M, N], Y[M, N]: fp32, Z[M, N]: fp32 -> R[M, N]: fp32")
def of_rows(A, B, Y, Z, R):
    for i in tw.metapipe(A.shape[0]):
        a, b = tw.load_tile(A[i, :]), tw.load_tile(B[i, :])
        y, z = tw.load_tile(Y[i, :]), tw.load_tile(Z[i, :])
        tw.store_tile(R[i, :], tw.row_sum(a * b) / tw.maximum(y * z, 1e-8))


@tw.kernel("A[M, N], B[M, N], Y[M, N]: fp32, Z[M, N]: fp32 -> R[M, N]: fp32")
def of_columns(A, B, Y, Z, R):
    for j in tw.metapipe(A.shape[1]):
        a, b = tw.load_tile(A[:, j]), tw.load_tile(B[:, j])
        y, z = tw.load_tile(Y[:, j]), tw.load_tile(Z[:, j])
        tw.store_tile(R[:, j], tw.col_sum(a * b) / tw.maximum(y * z, 1e-8))


@tw.kernel("A[M, N], B[M, N] -> C[M, 1]: fp32")
def cosine(A, B, C):
    """With one column, the norms of the first part are tiles of the second."""
    for i in tw.metapipe(A.shape[0]):
        a, b = tw.load_tile(A[i, :]), tw.load_tile(B[i, :])
        na, nb = tw.sqrt(tw.row_sum(a * a)), tw.sqrt(tw.row_sum(b * b))
        tw.store_tile(C[i, :], tw.row_sum(a * b) / tw.maximum(na * nb, 1e-8))


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", [bf16, fp32], ids=str)
@pytest.mark.parametrize("sides", [(1, 1), (17, 1), (1, 17), (5, 2), None], ids=str)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", [of_rows, of_columns, cosine], ids=lambda each: each.name)
def test_statistics_of_one_program_and_tiles_of_another_equal_golden(
    kernel, chip, sides, dtype, seed
):
    draw = np.random.default_rng(seed)
    verify(kernel, CHIPS[chip], sides or (side(draw, 100), side(draw, 100)), dtype)
