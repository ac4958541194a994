"""array-d: the lecture's product; chains of tiles wait for no weights; counters add up."""

import pytest

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.unit_config import UnitConfig
from hw.matrix.weight_buffer import swap_distance
from hw.numeric.formats import bf16, int8
from tests.hw.matrix.units import Case, build, outcome, predicted


def _unit(dataflow, fmt, latency, rows=8, columns=8, depth=64, **options):
    array = ArrayConfig(rows, columns, dataflow, (fmt,), latency)
    return UnitConfig(array, accumulator_rows=depth, **options)


#: Units that chain tiles: both dataflows that keep an operand, formats of both widths, every L.
_CHAINS = {
    f"{dataflow.value}_{fmt.name}_{latency}": _unit(dataflow, fmt, latency)
    for dataflow in (Dataflow.WS, Dataflow.IS)
    for fmt in (int8, bf16)
    for latency in (1, 2, 3)
} | {
    "below": _unit(Dataflow.WS, bf16, 3, adder="bottom"),
    "wide": _unit(Dataflow.WS, int8, 1, rows=3, columns=12),
}
_UNITS = {"lecture": _unit(Dataflow.IS, bf16, 1, depth=4096)} | _CHAINS


@pytest.fixture(scope="module")
def model(heavy_lock):
    with heavy_lock(), build(_UNITS) as built:
        yield built


@pytest.mark.slow
@pytest.mark.must("array-d", goal="8 x 8 . 8 x 4096: M.N.K / (R.C.window) >= 0.99")
def test_the_lectures_product_keeps_the_array_busy(model, figure):
    """Its 4,096 columns move past the 8 × 8 matrix that stays."""
    m, n, k = 8, 4096, 8
    case = Case("lecture", _UNITS["lecture"], m, n, k, (bf16, bf16))
    cycles, counters, right = outcome(model, case)
    share = m * n * k / (8 * 8 * cycles)
    assert right and share >= 0.99
    assert counters["active"] == 4096 and sum(counters.values()) == model.cycle
    figure(f"{share:.4f} of 64 products a cycle")


@pytest.mark.slow
@pytest.mark.must("array-d", goal="4,096 accumulators hold the sums of all columns")
def test_as_many_accumulators_as_the_lecture_has_columns(model, figure):
    m, n, k = 8, 4096, 24
    case = Case("lecture", _UNITS["lecture"], m, n, k, (bf16, bf16))
    assert case.tiling.blocks == [(0, 4096)] and case.tiling.tiles == 3
    cycles, _, right = outcome(model, case)
    assert right
    figure(f"three tiles of 4,096 rows in {cycles} cycles")


def _chain(name, height, tiles):
    """A product whose tiles are of ``height`` rows, for three groups of the array's columns."""
    config = _CHAINS[name]
    array = config.array
    (fmt,) = array.formats
    m, n = height, 2 * array.columns + 1
    if array.dataflow == Dataflow.IS:
        m, n = n, m
    inner = tiles * array.rows * fmt.products_per_cycle
    return Case(name, config, m, n, inner, (fmt, fmt))


@pytest.mark.slow
@pytest.mark.must("array-d", goal="weight stalls 0 over a chain of tiles of >= 2R rows")
@pytest.mark.parametrize("name", _CHAINS)
def test_a_chain_of_tiles_waits_for_no_weights(model, name, figure):
    """Only the first tile is waited for, however many follow."""
    array = _CHAINS[name].array
    rows = array.rows
    for tiles in (1, 2, 9):
        for height in (2 * rows, 2 * rows + 3, 3 * rows + 7):
            case = _chain(name, height, tiles)
            cycles, counters, right = outcome(model, case)
            assert right and sum(counters.values()) == model.cycle
            assert cycles == predicted(case)
            # The first vector waits at the port, and the first tile takes R cycles to come.
            assert counters["weight_stall"] == max(rows, 3) - 1
            changes = case.tiling.groups * tiles - 1
            wait = max(0, swap_distance(array) - height)
            assert counters["weight_shift"] == changes * wait
            assert counters["active"] == case.tiling.groups * tiles * height
    figure("0 after the first tile, in ws and is, int8 and bf16, L = 1 to 3")


@pytest.mark.slow
@pytest.mark.must("array-d", goal="a new tile costs no cycle, from the rows on that docs name")
@pytest.mark.parametrize("name", _CHAINS)
def test_a_tile_of_enough_rows_costs_its_rows(model, name, figure):
    """From R·L + 2 rows on, L + 2 with an adder below, and the distance of swaps; not before."""
    config = _CHAINS[name]
    array = config.array
    sums = (2 + array.latency) if config.bottom else (2 + array.rows * array.latency)
    enough = max(sums, array.rows, 3, (array.rows - 1) * (array.latency - 1) + array.columns)
    assert enough <= config.accumulator_rows
    for height in (enough - 1, enough, enough + 5):
        spent = [outcome(model, _chain(name, height, tiles))[0] for tiles in (2, 5)]
        pause = spent[1] - spent[0] - 3 * 3 * height
        assert pause == (0 if height >= enough else 9), (name, height)
    figure(f"{len(_CHAINS)} units: no cycle between tiles of as many rows, a cycle with one less")
