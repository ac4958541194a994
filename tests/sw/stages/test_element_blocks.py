"""Blocks of element math: little is computed beside the elements, and lines have equal shares."""

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32, int8
from sw.array_spec import arrays_of
from sw.kernels.add import add
from sw.kernels.gelu import gelu
from sw.lane_codes.lane_codes import lane_codes
from sw.stages.elements.element_blocks import element_blocks
from sw.stages.region import region_of
from tests.sw.stages.region_runs import verify


def blocks_of(kernel, rows, columns, lines, copies, dtype=bf16, chip="large"):
    program = kernel.trace(dtype=dtype, M=rows, N=columns)
    region, config = region_of(program), named[chip]
    types = {name: each.type for name, each in region.inputs.items()}
    formats = {value: region.formats[tensor] for value, tensor in region.outputs.items()}
    bits = config.pcu.function_bits
    codes = lane_codes(
        region.nodes, types, formats, lane_axis=1, function_bits=bits, returns=True, phases=1
    )
    return element_blocks(region, codes, arrays_of(program), config, lines, copies)


def filled(blocks):
    """Elements that the busiest line would take, if all lines were as busy."""
    down, across = blocks.counts(0)
    return blocks.lines * down * across * blocks.rows * blocks.columns


@pytest.mark.parametrize(("rows", "columns"), [(724, 728), (300, 1800), (1, 600_000), (1024, 512)])
@pytest.mark.parametrize(("lines", "copies"), [(4, 1), (4, 2), (3, 3), (4, 4)])
def test_rows_without_gaps_are_filled(rows, columns, lines, copies):
    """Rows of whole packets would be up to 6 % longer, and their last blocks half empty."""
    blocks = blocks_of(add, rows, columns, lines, copies)
    assert rows * columns <= filled(blocks) <= 1.03 * rows * columns
    assert blocks.packets % copies == 0


def test_whole_rows_remain_where_nothing_is_gained():
    blocks = blocks_of(gelu, 1024, 512, 4, 1)
    assert (blocks.rows, blocks.columns, blocks.down, blocks.across) == (8, 256, 128, 2)


@pytest.mark.parametrize("columns", [14_171, 14_176])
def test_rows_stay_rows_where_no_width_divides(columns):
    """The bytes between rows of 14,171 elements are no elements; 37 × 443 is odd."""
    blocks = blocks_of(add, 37, columns, 4, 4)
    assert blocks.arrays[0].shape == (37, columns)
    assert filled(blocks) <= 1.07 * 37 * columns


def test_lines_share_the_columns_of_few_rows():
    blocks = blocks_of(gelu, 3, 14_171, 4, 1)
    assert blocks.by_columns
    assert [blocks.place(line) for line in range(2)] == [(0, 0), (0, blocks.columns)]
    assert sum(blocks.counts(line)[1] for line in range(4)) == blocks.across


@tw.kernel("X[M, N] -> Y[M, N]: fp32")
def widened(X, Y):
    """Rows of bf16 may have gaps where those of fp32 have none."""
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) + 1.0)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kernel", "shape", "dtype"),
    [
        (add, (7, 104), bf16),
        (gelu, (90, 88), bf16),
        (gelu, (3, 1001), bf16),
        (add, (2, 1500), bf16),
        (widened, (48, 36), bf16),
        (widened, (21, 40), bf16),
        (add, (13, 80), int8),
        (add, (64, 100), bf16),
        (add, (13, 76), fp32),
    ],
)
@pytest.mark.parametrize("chip", ["small", "large"])
def test_matrices_of_other_widths_equal_golden(kernel, shape, dtype, chip):
    verify(kernel, chip, shape, dtype)
