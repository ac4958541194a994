"""array-d: the lecture's product; chains of tiles wait for no weights; counters add up."""

import pytest

from hw.numeric.formats import bf16, int8
from tests.hw.systolic.units import LARGE, Case, build, outcome


@pytest.fixture(scope="module")
def model(heavy_lock):
    with heavy_lock(), build(LARGE) as built:
        yield built


@pytest.mark.slow
@pytest.mark.must("array-d", goal="8 x 8 . 8 x 4096: M.N.K / (R.C.window) >= 0.99")
def test_the_lectures_product_keeps_the_array_busy(model, figure):
    """Its 4,096 columns move past the 8 × 8 matrix that stays."""
    m, n, k = 8, 4096, 8
    cycles, counters, right = outcome(
        model, Case("lecture", LARGE["lecture"], m, n, k, (bf16, bf16))
    )
    share = m * n * k / (8 * 8 * cycles)
    assert right and share >= 0.99
    assert counters["active"] == 4096 and sum(counters.values()) == model.cycle
    figure(f"{share:.4f} of 64 products a cycle")


@pytest.mark.slow
@pytest.mark.must("array-d", goal="4,096 accumulators hold the sums of all columns")
def test_as_many_accumulators_as_the_lecture_has_columns(model, figure):
    m, n, k = 8, 4096, 24
    case = Case("lecture", LARGE["lecture"], m, n, k, (bf16, bf16))
    assert case.tiling.blocks == [(0, 4096)] and case.tiling.tiles == 3
    cycles, _, right = outcome(model, case)
    assert right
    figure(f"three tiles of 4,096 rows in {cycles} cycles")


@pytest.mark.slow
@pytest.mark.must("array-d", goal="weight stalls 0 over a chain of tiles of >= 2R rows")
@pytest.mark.parametrize("name", ["ws", "deep"])
def test_a_chain_of_tiles_waits_for_no_weights(model, name, figure):
    """Only the first tile is waited for, however many follow."""
    config = LARGE[name]
    rows = config.array.rows
    for tiles in (1, 2, 9):
        for height in (2 * rows, 2 * rows + 3):
            case = Case(name, config, height, 40, tiles * 2 * rows, (int8, int8))
            _, counters, right = outcome(model, case)
            assert right and sum(counters.values()) == model.cycle
            # The first vector waits at the port, and the first tile takes R cycles to come.
            assert counters["weight_stall"] + counters["weight_shift"] == rows - 1
            assert counters["active"] == case.tiling.groups * tiles * height
    figure("0 after the first tile")
