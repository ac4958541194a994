"""Fused softmax in RTL: a scores unit wired to a values unit, against golden by bits."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import named
from hw.arch.lanes.key_mask import KeyMask
from hw.numeric import reference
from hw.numeric.formats import bf16
from tests.hw.pcu.attention_pair import (
    Attention,
    AttentionPair,
    run_attention,
    simulate_attention,
)
from tests.hw.units import LANES_CHIP as CHIP
from tests.native.stream_model import StreamModel

C = CHIP.grid_columns
WIDE = named["small"]


def normal(rng, *shape):
    return reference.cast(rng.normal(0, 1, shape).astype(np.float32), bf16)


def attention(rng, blocks, *, d=8, dv=6, mask=None, scale=1.0, chip=CHIP):
    keys = max(sum(each) for each in blocks)
    groups = len(blocks)
    queries = normal(rng, groups, chip.grid_columns, d)
    return Attention(
        chip,
        reference.cast(queries.astype(np.float32) * np.float32(scale), bf16),
        normal(rng, groups, keys, d),
        normal(rng, groups, keys, dv),
        blocks,
        mask or KeyMask(),
    )


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_a_pair_computes_attention(stall, seed):
    rng = np.random.default_rng(seed)
    simulate_attention(attention(rng, [[16, 8], [4], [8, 8]]), rng, stall=stall)


MASKS = {
    "causal": KeyMask(length=22, causal=True, offset=10, query_step=C, groups=2),
    "window": KeyMask(window=9, offset=12, query_step=C, first_key=-3, key_step=2),
    "none seen": KeyMask(causal=True, offset=-1),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masked_keys_do_not_count(mask, seed):
    """In three query groups; the causal mask then begins anew."""
    rng = np.random.default_rng(seed)
    blocks = [[16, 8], [12, 4, 8], [16, 4]]
    simulate_attention(attention(rng, blocks, mask=mask), rng, stall=0.1)


def test_large_scores_raise_the_maximum_and_scale_old_sums(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, [[4] * 10], scale=60.0, d=4, dv=2)
    rises = np.array([block.rises for own in case.golden()[0] for block in own])
    assert ((rises[1:] > 0) & (rises[1:] < 255)).any()
    simulate_attention(case, rng)


@pytest.mark.parametrize(
    "special",
    [
        np.nan,
        -np.inf,
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


def test_rows_of_equal_scores_and_of_minus_infinity(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, [[8, 8], [8]], d=4, dv=2)
    case.keys[0] = case.keys[0, :1]
    case.keys[1, :, 0] = bf16.dtype.type(-np.inf)
    case.queries[1, :, 0] = bf16.dtype.type(1)
    assert np.isnan(case.golden()[1][1].astype(np.float32)).all()
    simulate_attention(case, rng)


@pytest.fixture(scope="module")
def wide_model(heavy_lock):
    pair = AttentionPair(width_bits=WIDE.width_bits, config=WIDE.pcu)
    design = emit(pair)
    with heavy_lock():
        model = StreamModel(design, pair)
    with model:
        yield model


def busy(model, name):
    """Share of cycles after the first block in which a row enters a unit's grid."""
    begin, end, rows = (model.get(f"{name}_{each}") for each in ("begin", "end", "rows"))
    return rows / (end - begin + 1)


@pytest.mark.slow
def test_both_grids_are_busy_after_the_first_block(wide_model, seed):
    """1,024 keys in blocks of 64, d = 128, four query groups: bit-exact, no memory between."""
    rng = np.random.default_rng(seed)
    case = attention(rng, [[64] * 16] * 4, d=128, dv=128, chip=WIDE)
    run_attention(wide_model, case, seed=seed)
    shares = {name: busy(wide_model, name) for name in ("scores", "values")}
    print(shares)
    assert min(shares.values()) >= 0.95, shares


@pytest.mark.slow
@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_a_causal_mask_and_an_odd_length_at_full_width(wide_model, stall, seed):
    rng = np.random.default_rng(seed)
    c = WIDE.grid_columns
    causal = KeyMask(length=1000, causal=True, offset=500, query_step=c)
    case = attention(rng, [[64] * 16, [48] * 11], d=128, dv=128, mask=causal, chip=WIDE)
    run_attention(wide_model, case, stall=stall, seed=seed)
