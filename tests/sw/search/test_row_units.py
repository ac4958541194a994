"""Rows of a group are whole vectors of memory wherever a stream begins at a group of its own."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig, PmuConfig
from sw.kernels.matmul import matmul

#: Four bf16 a vector, which are half of an aligned address; one AGCU stores two streams of results.
NARROW = ChipConfig(
    rows=4,
    columns=6,
    width_bits=64,
    pmu=PmuConfig(capacity_bytes=16384),
    agcu=AgcuConfig(count=1),
)


@pytest.mark.few(2)
@pytest.mark.parametrize("columns", [144, 216, 348])
def test_result_writers_of_one_agcu_begin_at_aligned_addresses(columns, seed):
    draw = np.random.default_rng(seed)
    a, b = (draw.normal(size=each).astype(tw.bf16.dtype) for each in ((3, 74), (74, columns)))
    found = matmul.run(a, b, config=NARROW, backend="emulator")
    assert found.verified, found.problems
