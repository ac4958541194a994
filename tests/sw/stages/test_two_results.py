"""Several results of one region of element math in one image: equal golden, live, and divided."""

import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from hw.numeric.formats import named as formats
from sw.compiler import compile_kernel
from sw.parts.slices import stores
from tests.attention_in_parts import attention_in_parts
from tests.sw.stages.region_runs import operand, side, verify


@tw.kernel("X[M, N] -> E[M, N], R[M, 1]")
def exponentials(X, E, R):
    """Rows, two or more columns of a vector, before the statistic."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(E[i, :], e)
        tw.store_tile(R[i, :], tw.row_sum(e))


@tw.kernel("X[M, N] -> Y[M, N], R[M, 1]")
def softmax_sums(X, Y, R):
    """The statistic is sent before the rows that take it."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        r = tw.row_sum(e)
        tw.store_tile(R[i, :], r)
        tw.store_tile(Y[i, :], e / r)


@tw.kernel("X[M, N] -> A[M, 1], V[M, 1]")
def moments(X, A, V):
    """Two statistics and no rows."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        m = tw.row_mean(x)
        d = x - m
        tw.store_tile(A[i, :], m)
        tw.store_tile(V[i, :], tw.row_mean(d * d))


@tw.kernel("X[M, N] -> A[M, N], B[M, N]")
def two_tiles(X, A, B):
    """Two results of as many elements, without a buffer behind the lanes."""
    for i in tw.metapipe(X.shape[0]):
        e = tw.exp(tw.load_tile(X[i, :]))
        tw.store_tile(A[i, :], e)
        tw.store_tile(B[i, :], e * 2.0 + 1.0)


ROWS = (exponentials, softmax_sums, moments)


def stored(kernel):
    """Formats of the results: rows in bf16, also of an fp32 source, beside fp32 statistics."""
    rows = {"exponentials": {"E": "bf16"}, "softmax_sums": {"Y": "bf16"}}
    return {**rows[kernel.name], "R": "fp32"} if kernel.name in rows else None


def parts(kernel, config, sizes, dtype=bf16):
    """Number of parts."""
    out = {name: formats[each] for name, each in (stored(kernel) or {}).items()} or None
    dims = dict(zip("MN", sizes, strict=True))
    return len(compile_kernel(kernel, named[config], dims=dims, dtype=dtype, out=out).parts)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [bf16, fp32], ids=str)
@pytest.mark.parametrize("kernel", ROWS, ids=lambda kernel: kernel.name)
def test_rows_and_statistics_are_one_image_and_equal_golden(kernel, dtype, seed, draws):
    """Ragged rows, more blocks than slots, rows of two boxes; in the source's format and others."""
    rng = random.Random(seed)
    some = ((20, 257 + rng.randrange(150)), (131, 24), (side(rng, 150), side(rng, 60)))
    for sizes in some[: draws(1, 3)]:
        verify(kernel, "small", sizes, dtype, out=stored(kernel))
        verify(kernel, "small", sizes, dtype)
    assert parts(kernel, "small", sizes, dtype) == 1
    # More blocks of two boxes than slots: rows must not wait for statistics of later blocks.
    verify(kernel, "small", (300, 512), dtype, out=stored(kernel))
    sizes = (side(rng, 30), side(rng, 30))
    verify(kernel, "tiny", sizes, dtype, out=stored(kernel))
    assert parts(kernel, "tiny", sizes, dtype) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", ROWS, ids=lambda kernel: kernel.name)
def test_results_on_rtl_equal_golden_under_random_stalls(kernel, heavy, seed):
    rest = {"backend": "rtl", "seed": seed % 1000, "jitter": 20}
    verify(kernel, "tiny", (9, 7), out=stored(kernel), **rest)
    verify(kernel, "tiny", (5, 6), fp32, out=stored(kernel), **rest)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ROWS, ids=lambda kernel: kernel.name)
def test_results_on_rtl_of_small_equal_golden_under_random_stalls(kernel, heavy, seed):
    rest = {"backend": "rtl", "seed": seed % 1000, "jitter": 20}
    verify(kernel, "small", (70, 300), fp32, out=stored(kernel), **rest)
    verify(kernel, "small", (131, 37), out=stored(kernel), **rest)


@tw.kernel("X[H, M, N] -> E[H, M, N], R[H, M, 1]")
def heads(X, E, R):
    """Rows and statistics of several heads: iterations of a launch."""
    for h in tw.each(X.shape[0]):
        for i in tw.metapipe(X.shape[1]):
            x = tw.load_tile(X[h, i, :])
            e = tw.exp(x - tw.row_max(x))
            tw.store_tile(E[h, i, :], e)
            tw.store_tile(R[h, i, :], tw.row_sum(e))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("config", "backend"), [("small", "emulator"), ("large", "emulator"), ("tiny", "rtl")]
)
def test_statistics_of_heads_are_iterations_of_one_launch(config, backend, heavy, seed):
    draw = np.random.default_rng(seed)
    for dtype in (bf16, fp32):
        shape = (3, 9, 7) if backend == "rtl" else (4, 70, 40)
        result = heads.run(operand(draw, shape, dtype), config=config, backend=backend)
        assert result.verified, result.problems
        assert (result.parts, result.entries) == (1, 1)


def test_two_tiles_without_a_buffer_take_an_agcu_each():
    """Stores of one AGCU take turns: a chip with one runs two images."""
    assert parts(two_tiles, "small", (131, 257)) == 1
    verify(two_tiles, "small", (131, 257))
    assert parts(two_tiles, "tiny", (20, 9)) == 2
    verify(two_tiles, "tiny", (20, 9))


def test_rows_in_pieces_leave_no_room_for_a_second_result():
    """What waits for its turn would fit no buffer, so the sums are of a part of their own.

    The maxima are, too, since exponentials of few rows are faster in blocks.
    """
    assert parts(exponentials, "tiny", (7, 512), fp32) == 3
    verify(exponentials, "tiny", (7, 512), fp32)


def test_exponentials_and_their_sums_are_one_part_of_attention():
    dims = {"H": 1, "M": 64, "S": 64, "D": 32}
    compiled = compile_kernel(attention_in_parts, named["small"], dims=dims, dtype=bf16)
    assert [len(list(stores(each.part.program.nodes))) for each in compiled.parts] == [1, 2, 1]
