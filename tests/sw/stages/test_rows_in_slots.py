"""Rows that lie in several slots and are loaded once: equal to golden, and close to the lanes."""

import dataclasses

import pytest

from hw.arch.config import PmuConfig, named
from hw.numeric.formats import bf16, fp32
from sw.compiler import compile_kernel
from sw.kernels.layer_norm import layer_norm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from tests.sw.stages.region_runs import verify


def compiled_of(kernel, config, shape, dtype=bf16):
    rows, columns = shape
    return compile_kernel(kernel, config, dims={"M": rows, "N": columns}, dtype=dtype)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kernel", "chip", "shape", "dtype"),
    [
        (softmax, "small", (130, 128), bf16),
        (softmax, "small", (70, 512), bf16),
        (softmax, "large", (150, 384), bf16),
        (softmax, "small", (33, 192), fp32),
        (rms_norm, "small", (100, 128), bf16),
        (layer_norm, "small", (40, 256), bf16),
        (layer_norm, "large", (70, 192), fp32),
    ],
)
def test_kernels_equal_golden(kernel, chip, shape, dtype):
    (part,) = compiled_of(kernel, named[chip], shape, dtype).parts
    assert " slots" in part.pipeline.summary
    verify(kernel, chip, shape, dtype)


def test_a_ring_has_room_for_a_row_and_a_part_of_the_next():
    """The pieces of a row are freed one by one, as its last packet is read."""
    chip = dataclasses.replace(named["small"], pmu=PmuConfig(capacity_bytes=32768))
    (part,) = compiled_of(softmax, chip, (200, 640)).parts
    assert "in 8 slots" in part.pipeline.summary
    assert part.homes["line0_x_0"].slots == 12
    verify(softmax, chip, (200, 640))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "rows", "columns", "least"),
    [
        ("small", 512, 1024, 0.96),
        pytest.param("large", 512, 1024, 0.85, marks=pytest.mark.slow),
        pytest.param("large", 1024, 512, 0.85, marks=pytest.mark.slow),
    ],
)
def test_long_rows_are_loaded_beside_the_lanes(chip, rows, columns, least, figure):
    config = named[chip]
    cycles = compiled_of(softmax, config, (rows, columns)).predicted_cycles
    share = 3 * rows * columns / (config.pcu_count * config.pcu.lanes) / cycles
    figure(f"softmax {rows} × {columns} on {chip}: {cycles:,} cycles, {share:.3f} of the lanes")
    assert least <= share <= 1
