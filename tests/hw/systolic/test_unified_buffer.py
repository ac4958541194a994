"""The unified buffer: activations filled in once, read for every group of columns."""

import numpy as np
import pytest
from amaranth.hdl import Shape

from hw.numeric import reference
from hw.numeric.formats import int8
from hw.systolic.dataflow import LANE_BITS, ArrayConfig, Dataflow
from hw.systolic.unified_buffer import BufferedUnit, command_layout
from hw.systolic.unit_config import UnitConfig
from sim.drivers.systolic import UnitTiling, unit_counters
from tests.hw.systolic.units import operand
from tests.hw.units import BUFFER_DEPTH as DEPTH
from tests.hw.units import BUFFERED as CONFIG


@pytest.fixture
def model(systolic_units):
    return systolic_units


def words(values, bits):
    """Payloads of integers of so many bits."""
    size = -(-bits // 32) * 4
    data = b"".join(value.to_bytes(size, "little") for value in values)
    return np.frombuffer(data, np.uint32).reshape(-1, size // 4)


def commands(tiling):
    """Each block is filled in once, and forgotten after its last group of columns."""
    layout = command_layout(DEPTH)
    values = []
    for start, stop in tiling.blocks:
        rows = stop - start
        for group in range(tiling.groups):
            for tile in range(tiling.tiles):
                ends = group == tiling.groups - 1 and tile == tiling.tiles - 1
                fields = {
                    "offset": tile * rows,
                    "rows": rows - 1,
                    "release": tiling.tiles * rows if ends else 0,
                    "accumulate": int(tile > 0),
                    "finish": int(tile == tiling.tiles - 1),
                }
                values.append(layout.const(fields).as_value().value)
    return words(values, Shape.cast(layout).width)


def fills(tiling, a):
    """The vectors of each block once, without marks."""
    once = UnitTiling(
        tiling.config, tiling.m, tiling.config.array.columns, tiling.k, tiling.formats
    )
    vectors = once.streams(a, np.zeros((tiling.k, once.n), np.int8))[0]
    return vectors[:, : LANE_BITS * tiling.config.array.rows // 32]


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_activations_are_filled_in_once(model, seed, stall):
    rng = np.random.default_rng(seed)
    for index in range(8):
        model.reset(seed + index)
        m, n, k = (int(side) for side in rng.integers(1, (40, 20, 32)))
        a, b = operand(rng, (m, k), int8), operand(rng, (k, n), int8)
        tiling = UnitTiling(CONFIG, m, n, k, (int8, int8))
        sent = {
            "buffered_i_fill": fills(tiling, a),
            "buffered_i_command": commands(tiling),
            "buffered_i_weight": tiling.streams(a, b)[1],
        }
        names = (*sent, "buffered_o_result")
        crossed = model.run(
            sent, {"buffered_o_result": sum(tiling.packets)}, stalls=dict.fromkeys(names, stall)
        )
        result = tiling.result(crossed["buffered_o_result"].words)
        assert result.tobytes() == reference.matmul(a, b).tobytes(), (m, n, k)
        assert len(sent["buffered_i_fill"]) == m * tiling.tiles
        active = unit_counters(model.get("buffered_counters"))["active"]
        assert active == m * tiling.tiles * tiling.groups


@pytest.mark.parametrize(
    ("config", "depth", "message"),
    [
        (CONFIG, 48, "^Unified buffer rows must be a power of two from 2 to 1048576, not 48$"),
        (CONFIG, 0, "^Unified buffer rows must be .* not 0$"),
        (
            UnitConfig(ArrayConfig(2, 2, Dataflow.OS, (int8,), 1)),
            64,
            "^Unified buffer must be of a ws or is unit, not of os$",
        ),
    ],
)
def test_what_cannot_be_is_refused(config, depth, message):
    with pytest.raises(TypeError, match=message):
        BufferedUnit(config, depth=depth)
