"""attn-b: share of `large` in attention, cold, at a latency of 100 cycles, default schedule."""

import numpy as np
import pytest

import tilewright as tw
from sim.operands import random_operand
from sw.kernels.flash_attention import flash_attention

#: Heads, keys and as many queries, depth, whether causal, and the share of peak that is asked for.
_CASES = [
    (1, 1024, 128, False, 0.88),
    (1, 2048, 128, False, 0.94),
    (4, 1024, 128, True, 0.79),
    (1, 2048, 128, True, 0.88),
    (1, 1024, 64, False, 0.85),
    (1, 2048, 64, False, 0.92),
    (1, 1000, 128, False, 0.89),
    (1, 1537, 128, False, 0.89),
]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("attn-b", goal="`large`: shares of peak by length, depth and mask")
@pytest.mark.parametrize(("heads", "side", "depth", "causal", "goal"), _CASES)
def test_share_of_all_cells_of_large(heads, side, depth, causal, goal, heavy, figure):
    draw = np.random.default_rng(1)
    inputs = [random_operand(draw, (heads, side, depth), tw.bf16) for _ in "QKV"]
    result = flash_attention.run(*inputs, config="large", backend="rtl", causal=causal)
    seen = side * (side + 1) // 2 if causal else side**2
    figure(f"{heads} x {side} x {depth}: {result.cycles:,} cycles, {result.utilization:.4f}")
    assert result.verified
    assert result.macs == 2 * heads * seen * depth
    assert result.peak_macs_per_cycle == 2304
    assert result.utilization >= goal
