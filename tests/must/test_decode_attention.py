"""attn-e: one query of 16 heads, 8 of keys: share of the memory's roofline on `small`."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.operands import random_operand
from sw.kernels.flash_attention import flash_attention

HEADS, GROUPS, DEPTH = 16, 8, 128


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must(
    "attn-e", goal="decode: bytes of K and V over the buses' ≥ 0.90 at 1k, 0.93 at 4k"
)
@pytest.mark.parametrize(("keys", "goal"), [(1024, 0.90), (4096, 0.93)])
def test_one_query_takes_the_time_of_its_keys_and_values(keys, goal, heavy, figure):
    draw = np.random.default_rng(1)
    shapes = (HEADS, 1, DEPTH), (GROUPS, keys, DEPTH), (GROUPS, keys, DEPTH)
    inputs = [random_operand(draw, shape, tw.bf16) for shape in shapes]
    result = flash_attention.run(*inputs, config="small", backend="rtl")
    chip = named["small"]
    peak = chip.agcu.count * chip.width_bits // 8
    share = sum(each.nbytes for each in inputs[1:]) / (result.cycles * peak)
    figure(f"{keys:,} keys: {result.cycles:,} cycles, {share:.3f} of the roofline")
    assert result.verified and share >= goal
