"""attn-c: share of `small` in attention, cold, at a latency of 100 cycles, default schedule."""

import numpy as np
import pytest

import tilewright as tw
from sim.operands import random_operand
from sw.kernels.attention import attention
from sw.kernels.flash_attention import flash_attention

#: Kernel, keys and as many queries of one head, options, and the share of peak asked for.
_CASES = {
    "blocks": (flash_attention, 1024, {}, 0.85),
    "whole rows": (attention, 512, {"exact": True}, 0.40),
    "whole rows in blocks": (attention, 1024, {}, 0.85),
}


@pytest.mark.slow
@pytest.mark.must("attn-c", goal="depth 128: 1,024 keys in blocks ≥ 0.85, 512 in whole rows ≥ 0.40")
@pytest.mark.parametrize(("kernel", "side", "options", "goal"), _CASES.values(), ids=_CASES)
def test_attention_of_depth_128(kernel, side, options, goal, heavy, figure):
    draw = np.random.default_rng(1)
    inputs = [random_operand(draw, (1, side, 128), tw.bf16) for _ in "QKV"]
    result = kernel.run(*inputs, config="small", backend="rtl", **options)
    figure(f"{kernel.name} {options}: {result.cycles:,} cycles, {result.utilization:.4f}")
    assert result.verified
    assert result.macs == 2 * side * side * 128
    assert result.peak_macs_per_cycle == 1024
    assert result.utilization >= goal
