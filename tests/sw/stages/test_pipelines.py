"""Kernels without a product on chips: emulator equals golden, and what is refused."""

import dataclasses
import random

import pytest

import tilewright as tw
from hw.arch.config import PmuConfig, named
from hw.arch.errors import BadInputError
from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, SlotRing
from hw.arch.words.pmu_word import Access, Level
from hw.numeric.formats import bf16, fp32, int8
from sw.compiler import compile_kernel
from sw.kernels.add import add
from sw.kernels.gelu import gelu
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.rope import rope
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax
from sw.kernels.transpose import transpose
from tests.sw.stages.region_runs import side, verify

KERNELS = (add, silu, gelu, softmax, rms_norm, layer_norm, transpose)


@pytest.mark.few(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernels_equal_golden_on_random_shapes(kernel, seed):
    rng = random.Random(seed)
    for dtype in (bf16, fp32):
        verify(kernel, "small", (side(rng, 200), side(rng, 300)), dtype)
    verify(kernel, "small", (1, side(rng, 40)))
    verify(kernel, "small", (side(rng, 40), 1))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernels_equal_golden_on_many_shapes(kernel, seed):
    rng = random.Random(seed)
    for _ in range(10):
        verify(kernel, "small", (side(rng, 700), side(rng, 700)), rng.choice((bf16, fp32)))
    verify(kernel, "large", (side(rng, 300), side(rng, 300)))


@tw.kernel("X[M, N], R[M, N], b[N] -> Y[M, N]")
def bias_residual(X, R, b, Y):
    """A value that two programs take, a vector along the columns, and a residual behind them."""
    bias = tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], tw.silu(x + bias) + tw.load_tile(R[i, :]))


@tw.kernel("X[M, N], g[N], R[M, N] -> Y[M, N]")
def norm_residual(X, g, R, Y):
    """Whole rows for the statistic, then columns."""
    gain = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        scale = tw.rsqrt(tw.row_mean(x * x) + 1e-5)
        tw.store_tile(Y[i, :], x * scale * gain + tw.load_tile(R[i, :]))


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax_residual(X, Y):
    """The same tile for the statistics, and again behind them."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e) + x)


@tw.kernel("X[M, N] -> Y[M, N]")
def gated_softmax(X, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        e = tw.exp(x - tw.row_max(x))
        tw.store_tile(Y[i, :], e / tw.row_sum(e) * x)


@tw.kernel("X[M, N], g[N], b[N] -> Y[M, N]")
def layer_norm_residual(X, g, b, Y):
    gain, bias = tw.load_tile(g), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        d = x - tw.row_mean(x)
        scale = tw.rsqrt(tw.row_mean(d * d) + 1e-5)
        tw.store_tile(Y[i, :], d * scale * gain + bias + x)


@tw.kernel("X[M, N], a[N], b[N] -> Y[M, N]")
def affine(X, a, b, Y):
    """Two vectors along the columns."""
    p, q = tw.load_tile(a), tw.load_tile(b)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * p + q)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kernel", [softmax_residual, gated_softmax, layer_norm_residual], ids=lambda kernel: kernel.name
)
def test_what_statistics_are_of_may_be_taken_again(kernel, seed):
    """More blocks than slots, so both ways of a box to two buffers of a PCU chain free slots."""
    rng = random.Random(seed)
    for dtype in (bf16, fp32):
        verify(kernel, "small", (side(rng, 100), side(rng, 150)), dtype)
        verify(kernel, "large", (side(rng, 100), side(rng, 150)), dtype)
    verify(kernel, "small", (300, 20))
    if kernel is not layer_norm_residual:
        verify(kernel, "tiny", (side(rng, 40), side(rng, 40)))


@pytest.mark.parametrize(
    "kernel", [bias_residual, norm_residual, affine], ids=lambda kernel: kernel.name
)
def test_chains_beside_statistics_equal_golden(kernel, seed):
    rng = random.Random(seed)
    for dtype in (bf16, fp32):
        verify(kernel, "small", (side(rng, 100), side(rng, 300)), dtype)


@pytest.mark.parametrize("kernel", [add, silu, softmax, rms_norm, transpose], ids=lambda k: k.name)
def test_the_smallest_chip_runs_them(kernel, seed):
    rng = random.Random(seed)
    verify(kernel, "tiny", (side(rng, 40), side(rng, 30)))


@pytest.mark.parametrize("columns", [257, 300, 511])
def test_rows_of_aligned_pieces_equal_golden(columns):
    """Rows wider than a box, whose vectors are shorter than the alignment of memory."""
    verify(softmax, "tiny", (5, columns))
    verify(rms_norm, "small", (5, columns))


@tw.kernel("X[M, N], g[N] -> Y[M, N]")
def weighted(X, g, Y):
    """A vector along the columns among what is summed, and behind the sum."""
    weights = tw.load_tile(g)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], (x - tw.row_sum(x * weights)) * weights)


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [rms_norm, layer_norm, weighted], ids=lambda each: each.name)
@pytest.mark.parametrize("columns", [520, 601])
def test_vectors_that_no_buffer_holds_pass_in_pieces(kernel, columns):
    """Several blocks of rows, in whole pieces and with a rest, beside the smallest PMU."""
    for dtype in (bf16, fp32):
        verify(kernel, "tiny", (11, columns), dtype)
    verify(kernel, "small", (37, 4 * columns))


def test_rtl_takes_vectors_in_pieces(heavy):
    verify(rms_norm, "tiny", (9, 523), backend="rtl", seed=3, jitter=20)
    verify(weighted, "tiny", (9, 523), backend="rtl", seed=3, jitter=20)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (softmax, (9, 13)),
        (softmax_residual, (9, 7)),
        (rms_norm, (6, 10)),
        (silu, (7, 18)),
        (transpose, (11, 7)),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_rtl_equals_golden_under_random_stalls(kernel, sizes, heavy, seed):
    verify(kernel, "tiny", sizes, backend="rtl", seed=seed % 1000, jitter=20)


def test_other_formats():
    verify(add, "small", (20, 33), int8)
    verify(transpose, "small", (40, 70), int8)


@tw.kernel("X[M, N] -> Y[M, N]")
def tempered(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.exp(tw.load_tile(X[i, :]) / 3.0))


@pytest.mark.parametrize("bits", [12, 24])
def test_functions_of_constants_have_the_chips_bits(bits):
    pcu = dataclasses.replace(named["tiny"].pcu, function_bits=bits)
    config = dataclasses.replace(named["tiny"], pcu=pcu)
    verify(tempered, config, (9, 20))
    # One phase of one PCU: the reciprocal of 3 is a constant.
    compiled = compile_kernel(tempered, config, dims={"M": 9, "N": 20}, dtype=bf16)
    assert "chains of 1 PCUs" in str(compiled)


@tw.kernel("X[M, N] -> Y[M, N]")
def later_statistic(X, Y):
    """A statistic of what another lane program computes."""
    for i in tw.metapipe(X.shape[0]):
        s = tw.silu(tw.load_tile(X[i, :]))
        tw.store_tile(Y[i, :], s / tw.row_sum(s))


@tw.kernel("X[M, N] -> Y[N, M]")
def turned_power(X, Y):
    """Element math of a transposed tile."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[:, i], tw.exp(tw.load_tile(X[i, :]).T))


@pytest.mark.few(1)
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_several_images_serve_what_one_does_not(config, seed):
    """Half rows joined, a statistic of results, a transpose, a chain longer than the PCUs.

    The last may be one function, whose sequence is cut.
    """
    rng = random.Random(seed)
    verify(rope, config, (side(rng, 40), 16 * side(rng, 6)))
    for kernel in (later_statistic, turned_power, layer_norm, gelu):
        verify(kernel, config, (side(rng, 40), side(rng, 40)))


def refused(kernel, config, match, sizes=(8, 8), **more):
    with pytest.raises(BadInputError, match=match) as caught:
        compile_kernel(kernel, config, dims=dict(zip("MN", sizes)), dtype=bf16, **more)
    return caught.value


def test_what_does_not_fit_is_refused_with_needs_and_haves():
    small = named["small"]
    bare = dataclasses.replace(small, pcu=dataclasses.replace(small.pcu, lanes=0))
    refused(add, bare, "Element math needs lanes, and `pcu.lanes` is 0")
    little = dataclasses.replace(small, pmu=PmuConfig(capacity_bytes=1024))
    refused(softmax, little, r"needs 1 slots of \d+ bytes, .* and a PMU has 1024", (8, 500))
    refused(
        softmax, small, "Schedule.tile of `i` is not supported", schedule=tw.Schedule(tile={"i": 8})
    )


def test_a_walk_over_a_ragged_row_may_end_at_the_end_of_the_scratchpad():
    """Sixteen columns in each of three blocks, then five: the last block is not read further."""
    loops = (
        LoopProgram(2, stride=3 * 256),
        LoopProgram(3, stride=256, slope=-2, outer=Level.ADDRESS),
        LoopProgram(16, stride=1, slope=-11, outer=Level.ADDRESS),
    )

    def engine(base):
        return EngineProgram(SlotRing(base=base, count=1), loops, access=Access.COLUMN)

    sizes = {"width_bits": 256, "capacity_bytes": 4096, "slots": 16}
    engine(2048 - 4 * 256).check(None, **sizes)
    with pytest.raises(BadInputError, match="Position must be below the PMU's 2048 elements"):
        engine(2048 - 3 * 256).check(None, **sizes)
