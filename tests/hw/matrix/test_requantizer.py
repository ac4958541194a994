"""Rows of sums on read-outs that scale to int8, against exact float64."""

import numpy as np
import pytest

from hw.matrix.requantizer import SCALE_BITS
from hw.numeric.division import ceil_div
from tests.hw.units import READOUTS

SCALES = (0, 1, 2, 3, 255, 256, 257, 0x5555, 0x7FFF, 0x8000, 0x8001, 0xA800, 0xFFFE, 0xFFFF)
SHIFTS = range(48)
#: Results below a half where saturation begins, and round 0.
BORDERS = (-130, -129, -128, -127, -2, -1, 0, 1, 126, 127, 128)


@pytest.fixture
def model(systolic_units):
    return systolic_units


def scaled(values, scale, shift):
    """Products of up to 49 bits are exact in float64, and so are their quotients."""
    return np.rint(values.astype(np.float64) * scale / 2.0**shift).clip(-128, 127).astype(np.int8)


def limits(name):
    """Least and most of a sum and its bias."""
    terms = 1 + READOUTS[name].bias
    return -terms << 31, terms * ((1 << 31) - 1)


def run(model, rng, name, values, scale, shift, *, relu=False, stall=0.0):
    """Results of sums, each with a bias of any kind in a read-out that has them."""
    config = READOUTS[name]
    columns = config.array.columns
    table = np.zeros(ceil_div(len(values), columns) * columns, np.int64)
    table[: len(values)] = values
    table = table.reshape(-1, columns)
    rows = np.ones((len(table), columns + 1), np.uint32)
    streams = {"i_rows": rows}
    sums = table
    if config.bias:
        # Halves, one as much larger as the other is smaller.
        sums = table >> 1
        room = (1 << 31) - 1 - np.maximum(abs(sums), abs(table - sums))
        room = np.maximum(room, 0)
        sums = sums + rng.integers(-room, room, endpoint=True)
        streams["i_bias"] = (table - sums).astype(np.int32).view(np.uint32)
    rows[:, :-1] = sums.astype(np.int32).view(np.uint32)
    prefix = f"readout_{name}_"
    for port, value in (("scale", scale), ("shift", shift), ("relu", int(relu))):
        model.set(prefix + port, value)
    found = model.run(
        {prefix + port: words for port, words in streams.items()},
        {prefix + "o_result": len(table)},
        stalls={prefix + port: stall for port in (*streams, "o_result")},
    )
    words = np.ascontiguousarray(found[prefix + "o_result"].words).view(np.uint8)
    assert (words[:, columns] & 1).all()
    return words[:, :columns].view(np.int8).reshape(-1)[: len(values)]


@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_borders_of_results_at_every_shift(model, seed, name, every):
    """Sums round halves between two results: to the sides of each, and ties where one is a sum."""
    rng = np.random.default_rng(seed)
    ties = 0
    for shift in SHIFTS:
        for scale in (*SCALES, int(rng.integers(1, 1 << SCALE_BITS))):
            below = np.arange(-130, 130)
            if not every:
                below = np.concatenate([BORDERS, rng.choice(below, 16)])
            # Of twice the product, so that a half is an integer.
            halves = (2 * below + 1) << shift
            nearest = halves // max(2 * scale, 1)
            values = np.add.outer(nearest, np.arange(-1, 3)).reshape(-1).clip(*limits(name))
            ties += np.count_nonzero(values * scale * 2 == halves.repeat(4))
            found = run(model, rng, name, values, scale, shift)
            wrong = np.nonzero(found != scaled(values, scale, shift))[0]
            assert not wrong.size, (int(values[wrong[0]]), scale, shift, int(found[wrong[0]]))
    assert ties > 1000


@pytest.mark.few(2)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", READOUTS)
def test_random_sums_of_every_size(model, seed, name, relu):
    rng = np.random.default_rng(seed)
    least, most = limits(name)
    extremes = [least, least + 1, -1, 0, 1, most - 1, most]
    for shift in SHIFTS:
        scale = int(rng.integers(1, 1 << SCALE_BITS)) >> int(rng.integers(0, SCALE_BITS))
        values = rng.integers(least, most, 500, endpoint=True) >> rng.integers(0, 33, 500)
        values = np.concatenate([values, extremes])
        stall = float(rng.choice([0.0, 0.5]))
        found = run(model, rng, name, values, scale, shift, relu=relu, stall=stall)
        expected = scaled(values, scale, shift)
        expected = expected.clip(0, None) if relu else expected
        assert np.array_equal(found, expected), (scale, shift, stall)
