"""Fused softmax in RTL: a scores unit wired to a values unit, against golden by bits."""

import numpy as np
import pytest

from hw.arch.lanes.key_mask import KeyMask
from hw.numeric.formats import bf16
from tests.hw.pcu.attention_pair import random_attention, simulate_attention
from tests.hw.units import LANES_CHIP as CHIP

C = CHIP.grid_columns


def attention(rng, blocks, *, d=8, dv=6, **fields):
    return random_attention(rng, CHIP, blocks, d=d, dv=dv, **fields)


@pytest.mark.slow
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_a_pair_computes_attention(stall, seed):
    rng = np.random.default_rng(seed)
    simulate_attention(attention(rng, [[16, 8], [4], [8, 8]]), rng, stall=stall)


MASKS = {
    "causal": KeyMask(length=22, causal=True, offset=10, query_step=C, groups=2),
    "window": KeyMask(window=9, offset=12, query_step=C, first_key=-3, key_step=2),
    "none seen": KeyMask(causal=True, offset=-1),
}


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(mask, id=name, marks=() if name == "causal" else pytest.mark.slow)
        for name, mask in MASKS.items()
    ],
)
def test_masked_keys_do_not_count(mask, seed):
    """In three query groups; the causal mask then begins anew."""
    rng = np.random.default_rng(seed)
    blocks = [[16, 8], [12, 4, 8], [16, 4]]
    simulate_attention(attention(rng, blocks, mask=mask), rng, stall=0.1)


@pytest.mark.slow
def test_large_scores_raise_the_maximum_and_scale_old_sums(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, [[4] * 10], scale=60.0, d=4, dv=2)
    rises = np.array([block.rises for own in case.golden()[0] for block in own])
    assert ((rises[1:] > 0) & (rises[1:] < 255)).any()
    simulate_attention(case, rng)


@pytest.mark.slow
@pytest.mark.parametrize(
    "special",
    [
        np.nan,
        pytest.param(-np.inf, marks=pytest.mark.slow),
        pytest.param(np.inf, marks=pytest.mark.slow),
        pytest.param(1e5, marks=pytest.mark.slow),
    ],
)
def test_special_scores_are_defined(special, seed):
    """One key of a group has such a score for each query; the next group is as ever."""
    rng = np.random.default_rng(seed)
    case = attention(rng, [[8, 8], [4]], d=4, dv=2)
    case.keys[0, 5] = bf16.dtype.type(0)
    case.keys[0, 5, 0] = bf16.dtype.type(special)
    case.queries[0, :, 0] = bf16.dtype.type(1)
    simulate_attention(case, rng)


@pytest.mark.slow
def test_rows_of_equal_scores_and_of_minus_infinity(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, [[8, 8], [8]], d=4, dv=2)
    case.keys[0] = case.keys[0, :1]
    case.keys[1, :, 0] = bf16.dtype.type(-np.inf)
    case.queries[1, :, 0] = bf16.dtype.type(1)
    assert np.isnan(case.golden()[1][1].astype(np.float32)).all()
    simulate_attention(case, rng)
