"""Strides of walks over buffers fit their fields: half of a PMU, at most."""

import dataclasses

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import AgcuConfig, ChipConfig
from hw.arch.loops import LoopProgram
from sw.passes.field_limits import Unfit
from sw.stages.pipeline import PipelineParts
from sw.stages.stage_graph import Hold, Walk

WIDE = ChipConfig(rows=3, columns=3, width_bits=512, agcu=AgcuConfig(count=2))
CHIP = dataclasses.replace(WIDE, pmu=dataclasses.replace(WIDE.pmu, capacity_bytes=16384))


def test_a_walk_that_goes_half_a_pmu_further_is_refused():
    walk = Walk((LoopProgram(2, stride=8192),))
    hold = Hold(16384, 1, (walk,), (walk,))
    parts = PipelineParts(CHIP)
    parts.hold("rows", hold, wanted=1, rate=1.0, alignment=64, tokens=True)
    rule = "Stride between parts of buffer `rows` must be at most 8191 elements .* not 8192"
    with pytest.raises(Unfit, match=rule):
        parts.done("", 1, 1)


@tw.kernel("X[M, N] -> Q[M, N]: int8, s[M, 1]: fp32")
def quantized_rows(X, Q, s):
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        top = tw.row_max(tw.maximum(x, x * -1.0)) * (1 / 127)
        tw.store_tile(s[i, :], top)
        tw.store_tile(Q[i, :], (x * tw.reciprocal(top)).to(tw.int8))


def test_another_choice_is_taken_where_a_stride_is_too_long(seed):
    x = np.random.default_rng(seed).normal(size=(68, 35)).astype(tw.bf16.dtype)
    found = quantized_rows.run(x, config=CHIP, backend="emulator")
    assert found.verified, found.problems
