"""attn-e: one query of 16 heads, 8 of keys, and layers of GEMV: share of the memory's roofline."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.operands import random_operand
from sw.kernels.flash_attention import flash_attention

HEADS, GROUPS, DEPTH = 16, 8, 128
SIZE = 1024


@tw.kernel("X[M, K], W[L, K, K] -> Y[M, K]: bf16")
def layers_of_gemv(X, W, Y):
    x = tw.load_tile(X)
    for n in tw.repeat(W.shape[0]):
        x = (x @ tw.load_tile(W[n])).to(tw.bf16)
    tw.store_tile(Y, x)


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


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must(
    "attn-e", goal="8 layers of GEMV of 1,024 as one launch: bytes over buses' ≥ 0.95"
)
def test_layers_take_the_time_of_their_weights(heavy, figure):
    draw = np.random.default_rng(1)
    x, weights = (random_operand(draw, shape, tw.bf16) for shape in ((1, SIZE), (8, SIZE, SIZE)))
    result = layers_of_gemv.run(x, weights, config="small", backend="rtl")
    chip = named["small"]
    peak = chip.agcu.count * chip.width_bits // 8
    share = weights.nbytes / (result.cycles * peak)
    figure(f"8 layers: {result.cycles:,} cycles, {share:.3f} of the roofline")
    assert result.json()["launches"] == 1
    assert result.verified and share >= 0.95
