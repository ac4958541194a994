"""Vectors beside tiles in blocks of element math: bytes of golden, cycles of few rows."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16, fp32
from tests.sw.stages.region_runs import CHIPS, compiled_of, require_predicted, side, verify


@tw.kernel("X[M, N], b[N] -> Y[M, N]")
def biased_gelu(X, b, Y):
    """Joined phases: a packet is a strip, of a row or of several."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.gelu(tw.load_tile(X[i, :]) + tw.load_tile(b)))


@tw.kernel("X[M, N], g[N], b[N]: fp32 -> Y[M, N]")
def affine(X, g, b, Y):
    """Two vectors along the columns, of two formats."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * tw.load_tile(g) + tw.load_tile(b))


@tw.kernel("X[M, N], m[M, 1]: fp32, s[M, 1] -> Y[M, N]")
def scaled_rows(X, m, s, Y):
    """Element math on one element per row, computed again for each vector."""
    for i in tw.metapipe(X.shape[0]):
        r = tw.rsqrt(tw.load_tile(m[i, :]) * tw.load_tile(m[i, :]) + 1e-5)
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * r + tw.load_tile(s[i, :]))


@tw.kernel("X[M, N], Z[M, N], t[1, 1], g[N], m[M, 1] -> Y[M, N]: fp32")
def of_each_kind(X, Z, t, g, m, Y):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :]) * tw.load_tile(t) - tw.load_tile(m[i, :])
        tw.store_tile(Y[i, :], x * tw.load_tile(g) + tw.load_tile(Z[i, :]))


@tw.kernel("Q[M, N]: int8, s[N]: fp32 -> Y[M, N]")
def dequantized(Q, s, Y):
    """A vector of int8 has the elements of four of fp32."""
    for i in tw.metapipe(Q.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(Q[i, :]).to(tw.fp32) * tw.load_tile(s))


KERNELS = [biased_gelu, affine, scaled_rows, of_each_kind, dequantized]


def in_blocks(compiled):
    return all(" x " in part.pipeline.summary.split(" PCUs, ")[1] for part in compiled.parts)


@pytest.mark.few(6)
@pytest.mark.parametrize("dtype", [bf16, fp32], ids=str)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_random_sides_equal_golden(kernel, chip, dtype, seed):
    draw = np.random.default_rng(seed)
    verify(kernel, CHIPS[chip], (side(draw, 60), side(draw, 3000)), dtype)


@pytest.mark.few(3)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_many_blocks_equal_golden(kernel):
    """Blocks down and across, with a short last one each way."""
    compiled = compiled_of(kernel, "small", (19, 1400))
    assert in_blocks(compiled) or kernel is of_each_kind
    verify(kernel, named["small"], (19, 1400))


#: Kernel, chip, sides, cycles: with rows on lanes these took two to thirty times as many.
CORPUS = [
    (biased_gelu, "small", (1, 4096), 2_500),
    (biased_gelu, "small", (512, 512), 98_000),
    (affine, "small", (1, 4096), 1_900),
    (affine, "large", (16, 4096), 5_300),
    (scaled_rows, "small", (4, 4096), 4_800),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("kernel", "chip", "sides", "most"), CORPUS)
def test_few_rows_are_shared_by_all_pcus(kernel, chip, sides, most):
    assert compiled_of(kernel, chip, sides).predicted_cycles <= most


def test_rows_longer_than_a_buffer_load_their_vector_for_each_block():
    """65,536 elements of bf16 are more than a PMU of `small` may have beside other buffers."""
    compiled = compiled_of(affine, "small", (2, 65_536))
    assert in_blocks(compiled)
    verify(affine, named["small"], (2, 65_536))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_vectors_in_blocks_on_the_rtl(kernel, seed, heavy):
    draw = np.random.default_rng(seed)
    sides = int(draw.integers(3, 24)), int(draw.integers(500, 2000))
    require_predicted(kernel, "small", sides, bf16, seed)


def test_lines_begin_at_whole_beats_of_memory():
    """Vectors of 64 bits are half as long as the alignment of an address."""
    chip = ChipConfig(rows=5, columns=5, width_bits=64, agcu=AgcuConfig(count=2))
    for kernel, sides in ((affine, (3, 99)), (biased_gelu, (11, 355))):
        verify(kernel, chip, sides)
