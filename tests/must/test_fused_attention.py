"""unit-d: a scores unit and a values unit at W = 256, and four of each on the chip `small`."""

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.config import named
from hw.arch.counters import ACTIVITIES, COUNTER_WORDS, unit_kinds
from hw.arch.lanes.key_mask import KeyMask
from hw.arch.unit_kind import PCU
from hw.chip import Chip
from hw.numeric.formats import bf16
from sim.launch_memory import LaunchMemory
from sim.native.chip_model import ChipModel, MemoryConditions
from sw.chip_program import ChipProgram
from sw.prove import prove
from tests.hw.numeric.test_fused_softmax import error_ratio
from tests.hw.pcu.attention_chip import PAIRS, AttentionChip
from tests.hw.pcu.attention_pair import AttentionPair, random_attention, run_attention
from tests.native.heavy_model import heavy_model
from tests.units_lanes import placed

CHIP = named["small"]
KEYS, D = 1024, 128
#: Blocks of keys of a query group.
BLOCKS = [64] * (KEYS // 64)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def pair(heavy_lock):
    part = AttentionPair(width_bits=CHIP.width_bits, config=CHIP.pcu)
    design = emit(part)
    with heavy_model(heavy_lock, design, part) as model:
        yield model


def attention(seed, groups, **fields):
    rng = np.random.default_rng(seed)
    return random_attention(rng, CHIP, [BLOCKS] * groups, d=D, dv=D, **fields)


def busy(model, name):
    """Share of cycles after the first block in which a row enters a unit's grid."""
    begin, end, rows = (model.get(f"{name}_{each}") for each in ("begin", "end", "rows"))
    return rows / (end - begin + 1)


@pytest.mark.must("unit-d", goal="1,024 keys, d = 128: bit-exact, both grids >= 0.95 busy")
def test_both_grids_are_busy_after_the_first_block(pair, seed, figure):
    """Four query groups, sources always ready, no memory between."""
    run_attention(pair, attention(seed, 4), seed=seed)
    shares = {name: busy(pair, name) for name in ("scores", "values")}
    figure(", ".join(f"{name} grid {share:.3f} busy" for name, share in shares.items()))
    assert min(shares.values()) >= 0.95, shares


MASKS = {
    "causal": KeyMask(causal=True, offset=500, query_step=CHIP.grid_columns, groups=2),
    "length 1,000": KeyMask(length=1000),
    "causal, length 1,000": KeyMask(
        length=1000, causal=True, offset=990, query_step=CHIP.grid_columns
    ),
}


@pytest.mark.must("unit-d", goal="causal, length 1,000: defined, RTL = golden")
@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("mask", MASKS)
def test_masked_keys_do_not_count(pair, mask, stall, seed, figure):
    """Keys that no query sees may be NaN."""
    case = attention(seed, 3, mask=MASKS[mask])
    if MASKS[mask].length:
        case.keys[:, MASKS[mask].length :] = bf16.dtype.type(np.nan)
    assert np.isfinite(np.array(case.golden()[1], np.float32)).all()
    run_attention(pair, case, stall=stall, seed=seed)
    figure(f"{mask}: {KEYS} keys, equal by bits and finite")


@pytest.mark.must(
    "unit-d", goal="rows of equal scores, of -inf, with a NaN, of +-1e5: RTL = golden"
)
@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_special_rows_of_scores_are_defined(pair, stall, seed, figure):
    """A query group for each kind; those without NaN are near attention in float64."""
    case = attention(seed, 4)
    number = bf16.dtype.type
    case.keys[0] = case.keys[0, :1]
    case.keys[1:, :, 0] = number(0)
    case.queries[1:, :, 0] = number(1)
    case.keys[1, :, 0] = number(-np.inf)
    case.keys[2, 700, 0] = number(np.nan)
    case.keys[3, ::2, 0], case.keys[3, 1::2, 0] = number(1e5), number(-1e5)
    equal, lowest, with_nan, large = np.array(case.golden()[1], np.float32)
    assert np.isnan(lowest).all() and np.isnan(with_nan).all()
    means = case.values[0].astype(np.float64).mean(axis=0)
    assert np.abs(equal.T - means).max() < 2.0**-7
    scores = case.keys[3].astype(np.float64) @ case.queries[3].T.astype(np.float64) / D**0.5
    powers = np.exp(scores - scores.max(axis=0))
    exact = (powers / powers.sum(axis=0)).T @ case.values[3].astype(np.float64)
    # The sums that make the scores have 24 bits, scores of 1e5 so 2^-7 behind the point.
    assert np.abs(large.T - exact).max() < 2.0**-5
    run_attention(pair, case, stall=stall, seed=seed)
    figure("equal scores: the mean; -inf and NaN: NaN; +-1e5: finite; equal by bits")


@pytest.mark.must("unit-d", goal="error against float64, integer and exact maximum: <= 1.1 x")
def test_an_integer_maximum_costs_little(seed, figure):
    ratio, error = error_ratio(np.random.default_rng(seed), keys=KEYS, d=D)
    figure(f"error {error:.5f} of the output's size, {ratio:.3f} x that of the exact maximum")
    assert ratio <= 1.1


@pytest.mark.must("unit-d", goal="4 + 4 on `small`: bit-exact, busy share reported")
def test_four_pairs_on_small(seed, heavy, figure):
    """Keys, values and queries from memory, rows of the output to memory."""
    job = AttentionChip(CHIP, groups=4, blocks=len(BLOCKS), block=BLOCKS[0], d=D)
    image = placed(job.netlist(), CHIP)
    assert prove(ChipProgram.unpack(CHIP, image)).live
    inputs = job.inputs(np.random.default_rng(seed))
    layout = LaunchMemory.of_image(CHIP, image, job.arrays, seed=seed % 1000)
    memory = layout.bytes_before(inputs)
    with ChipModel(emit(Chip(CHIP)), CHIP) as model:
        run = model.run(
            memory,
            list_address=layout.list_address,
            conditions=MemoryConditions(latency=100, seed=seed % 1000),
            max_cycles=400_000,
        )
    assert run.status == "done" and run.errors_met == 0
    assert layout.read(memory, "O").tobytes() == job.golden(inputs).tobytes()
    units = list(unit_kinds(CHIP).values())
    words = np.array(run.counters).reshape(-1, COUNTER_WORDS)[: len(units)]
    pcus = words[[kind is PCU for kind in units]]
    shares = pcus[:, ACTIVITIES.index("busy")] / run.cycles
    assert len(shares) == 2 * PAIRS and run.bytes_written == layout.read(memory, "O").nbytes
    bus = run.bytes_read / (run.cycles * CHIP.agcu.count * CHIP.width_bits // 8)
    figure(
        f"{run.cycles:,} cycles, {4 * job.queries} queries: grids {shares.min():.3f} to "
        f"{shares.max():.3f} busy, buses {bus:.3f}"
    )
    assert shares.min() > 0.5
