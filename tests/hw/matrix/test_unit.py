"""Stand-alone matrix units: read-outs, presets scaled down, back-to-back products, wrong shapes."""

import dataclasses
import re

import numpy as np
import pytest

import tilewright
from hw.arch.errors import BadInputError, HangError
from hw.array.dataflow import Dataflow
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.tpu_catalog import PRESETS
from hw.numeric import elementwise, reference
from hw.numeric.formats import bf16, e4m3, e5m2, fp16, int8
from sim.drivers.unit_driver import UnitTiling
from tests.hw.matrix.units import Case, operand, outcome, predicted
from tests.hw.units import SYSTOLIC_UNITS as UNITS
from tests.native.product_runs import run_product
from tests.unelaborated import unelaborated


@pytest.fixture
def model(systolic_units):
    return systolic_units


def scaled(sums, scale, shift):
    """Sums times scale over 2^shift, to the nearest integer, ties to even, saturated to int8."""
    product = sums.astype(np.int64) * scale
    whole = product >> shift
    rest = product - (whole << shift)
    half = (1 << shift) >> 1
    up = (rest > half) | ((rest == half) & (whole & 1 == 1)) if shift else np.False_
    return (whole + up).clip(-128, 127).astype(np.int8)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shift", [0, 1, 9, 20, 47])
def test_integer_sums_are_biased_scaled_and_saturated(model, seed, shift, relu):
    rng = np.random.default_rng(seed)
    for name, stall in (("scaled", 0.0), ("scaled", 0.5), ("kept", 0.3)):
        model.reset(seed)
        m, n, k = (int(side) for side in rng.integers(1, 20, 3))
        a, b = operand(rng, (m, k), int8), operand(rng, (k, n), int8)
        scale = int(rng.integers(1, 1 << min(16, shift + 2)))
        bias = rng.integers(-(1 << 15), 1 << 15, n, np.int32) if name == "scaled" else None
        tiling = UnitTiling(UNITS[name], m, n, k, (int8, int8))
        stalls = dict.fromkeys(("i_activation", "i_weight", "i_bias", "o_result"), stall)
        run = run_product(
            model,
            tiling,
            a,
            b,
            prefix=f"{name}_",
            relu=relu,
            scaling=(scale, shift),
            bias=bias,
            stalls=stalls,
        )
        sums = reference.matmul(a, b).astype(np.int64) + (0 if bias is None else bias)
        golden = scaled(sums, scale, shift)
        golden = golden.clip(0, None) if relu else golden
        assert run.result.tobytes() == golden.tobytes(), (name, m, n, k, scale)


def test_halves_are_rounded_to_even(model):
    """Sums of 1 to 8 over 2: 0.5 and 2.5 go down, 1.5 and 3.5 up."""
    model.reset(1)
    a, b = np.arange(1, 9, dtype=np.int8).reshape(-1, 1), np.ones((1, 1), np.int8)
    tiling = UnitTiling(UNITS["kept"], 8, 1, 1, (int8, int8))
    run = run_product(model, tiling, a, b, prefix="kept_", scaling=(1, 1))
    assert run.result[:, 0].tolist() == [0, 1, 2, 2, 2, 3, 4, 4]


def test_a_bias_of_each_row_of_an_input_stationary_unit(model, seed):
    """Its results are columns of the product, so a vector of biases is for rows; two places."""
    rng = np.random.default_rng(seed)
    for stall in (0.0, 0.6):
        model.reset(seed)
        a, b = operand(rng, (7, 9), int8), operand(rng, (9, 11), int8)
        bias = rng.integers(-1000, 1000, 7, np.int32)
        tiling = UnitTiling(UNITS["summed"], 7, 11, 9, (int8, int8))
        run = run_product(
            model, tiling, a, b, prefix="summed_", bias=bias, stalls={"o_result": stall}
        )
        assert np.array_equal(run.result, reference.matmul(a, b) + bias[:, np.newaxis])


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", ["rounded", "halved", "eighth", "fifth", "below"])
def test_float_sums_are_rectified_and_cast(model, seed, name, relu):
    """NaN is not below zero, and stays; floats of 8 bits saturate."""
    config = UNITS[name]
    fmt = config.array.formats[0]
    for stall in (0.0, 0.5):
        case = Case(name, config, 12, 8, 7, (fmt, fmt), seed, (stall,) * 3, relu)
        cycles, _, right = outcome(model, case)
        assert right and (stall or cycles == predicted(case)), case


def test_tiles_that_are_added_below_have_an_order_of_their_own(model, seed):
    """Partial sums of R elements, each added with one rounding; tiles follow without a pause."""
    config = UNITS["below"]
    case = Case("below", config, 3, 3, 60, (bf16, bf16), seed)
    a, b = case.operands()
    tiled, straight = reference.matmul(a, b, tile=config.array.rows), reference.matmul(a, b)
    assert tiled.tobytes() != straight.tobytes()
    cycles, counters, right = outcome(model, case)
    assert right and cycles == predicted(case)
    assert counters["active"] == 3 * 30
    # Sums that enter the array are waited for: R·L + 2 is 4.
    above = dataclasses.replace(case, config=dataclasses.replace(config, adder="top"))
    assert cycles < predicted(above)


@pytest.mark.parametrize("fmt", [bf16, fp16, e4m3, e5m2])
def test_sums_by_tiles_keep_their_bound(fmt, seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((9, 70)).astype(fmt.dtype)
    b = (8 * rng.standard_normal((70, 8))).astype(fmt.dtype)
    start = rng.standard_normal((9, 8), np.float32)
    exact = start.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    bounds = {}
    for tile in (None, 2, 8, 64, 128):
        bounds[tile] = reference.error_bound(a, b, start, tile=tile)
        error = np.abs(reference.matmul(a, b, start, tile=tile) - exact)
        assert np.isfinite(bounds[tile]).all() and (error <= bounds[tile]).all()
    # Partial sums pass fewer roundings.
    assert (bounds[8] < bounds[None]).all()


def test_sums_of_integers_do_not_depend_on_tiles(seed):
    rng = np.random.default_rng(seed)
    a, b = operand(rng, (5, 30), int8), operand(rng, (30, 4), int8)
    assert np.array_equal(reference.matmul(a, b, tile=4), reference.matmul(a, b))


@pytest.mark.parametrize(("fmt", "tile"), [(e4m3, 3), (bf16, 0), (bf16, -2)])
def test_a_tile_that_parts_a_lane_is_refused(fmt, tile):
    a, b = np.zeros((2, 6), fmt.dtype), np.zeros((6, 2), fmt.dtype)
    rule = f"Tile of {fmt.name} must be a positive multiple of .*, not {tile}$"
    for function in (reference.matmul, reference.error_bound):
        with pytest.raises(ValueError, match=rule):
            function(a, b, tile=tile)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("below", {"adder": "side"}, "^Adder must be one of top, bottom, not 'side'$"),
        ("rounded", {"adder": "bottom"}, "^Bottom adder must be of a ws or is unit, not of os$"),
        ("rounded", {"out": int8}, "^Result format must be one of bf16, e4m3, e5m2, fp16, fp32, "),
        ("kept", {"out": fp16}, "^Result format must be one of int32, int8, not fp16$"),
    ],
)
def test_a_unit_that_cannot_be_is_refused(name, change, message):
    with pytest.raises(BadInputError, match=message):
        dataclasses.replace(UNITS[name], **change)


@pytest.mark.parametrize("adder", ["top", "bottom"])
def test_the_command_emits_an_adder_below_each_column(adder, tmp_path):
    words = f"verilog --component systolic --rows 2 --cols 3 --adder {adder} -o {tmp_path}/x.v"
    assert tilewright.main(words.split()) == 0
    instances = re.findall(r"^  bottom_adder_bf16_l1 ", (tmp_path / "x.v").read_text(), re.M)
    assert len(instances) == (3 if adder == "bottom" else 0)


def test_a_drain_of_several_sums_needs_room_for_all():
    array = dataclasses.replace(UNITS["rounded"].array, latency=3)
    with pytest.raises(BadInputError, match="^Result rows must be at least 3, the latency of an "):
        dataclasses.replace(UNITS["rounded"], array=array, result_rows=2)
    dataclasses.replace(UNITS["rounded"], array=array, result_rows=4)


@pytest.mark.parametrize("relu", [False, True])
def test_float_sums_are_scaled_and_biased_with_one_rounding(model, seed, relu):
    rng = np.random.default_rng(seed)
    for stall in (0.0, 0.5):
        model.reset(seed)
        m, n, k = (int(side) for side in rng.integers(1, 20, 3))
        a, b = operand(rng, (m, k), bf16), operand(rng, (k, n), bf16)
        scale, bias = rng.standard_normal(1, np.float32), rng.standard_normal(n, np.float32)
        tiling = UnitTiling(UNITS["affine"], m, n, k, (bf16, bf16))
        run = run_product(
            model,
            tiling,
            a,
            b,
            prefix="affine_",
            relu=relu,
            scaling=(int(scale.view(np.uint32)[0]), 0),
            bias=bias,
            stalls=dict.fromkeys(("i_activation", "i_bias", "o_result"), stall),
        )
        golden = elementwise.fma(reference.matmul(a, b), scale, bias) + np.float32(0)
        golden = np.where(golden < 0, np.float32(0), golden) if relu else golden
        assert run.result.tobytes() == reference.cast(golden, bf16).tobytes(), (m, n, k)


@pytest.mark.parametrize(
    ("name", "formats"),
    [("v1", (int8, int8)), ("v4", (bf16, bf16)), ("v4", (int8, int8)), ("v7", (e4m3, e5m2))],
)
def test_a_preset_scaled_down_multiplies(model, name, formats, seed):
    for stall in (0.0, 0.4):
        case = Case(name, UNITS[name], 21, 9, 19, formats, seed, (stall,) * 3)
        cycles, counters, right = outcome(model, case)
        assert right and sum(counters.values()) == model.cycle
        assert stall or cycles == predicted(case)


def test_presets_have_the_sizes_of_the_table():
    table = {
        "tpu-v1": (1, 256, 256, 65_536),
        "tpu-v2": (1, 128, 128, 16_384),
        "tpu-v3": (2, 128, 128, 32_768),
        "tpu-v4": (4, 128, 128, 65_536),
        "tpu-v7": (4, 256, 256, 262_144),
    }
    for name, (units, inner, columns, products) in table.items():
        preset = PRESETS[name]
        assert (preset.units, preset.inner, preset.columns) == (units, inner, columns)
        assert preset.products_per_cycle == products
        array = preset.config.array
        made = array.rows * array.columns * preset.formats[0].products_per_cycle
        assert made * preset.units == products


def test_a_product_follows_another_without_a_reset(model):
    model.reset(3)
    rng = np.random.default_rng(3)
    for index in range(6):
        a, b = operand(rng, (3 + index, 9), int8), operand(rng, (9, 4), int8)
        tiling = UnitTiling(UNITS["v1"], 3 + index, 4, 9, (int8, int8))
        run = run_product(model, tiling, a, b, prefix="v1_")
        assert np.array_equal(run.result, reference.matmul(a, b))


def test_a_missing_tile_is_a_hang_that_names_the_streams(model):
    model.reset(1)
    config = UNITS["v1"]
    tiling = UnitTiling(config, 5, 2, 3, (int8, int8))
    activations, weights = tiling.streams(np.ones((5, 3), np.int8), np.ones((3, 2), np.int8))
    with pytest.raises(HangError, match=r"v1_i_weight 1 of 1.*v1_o_result 0 of 5"):
        model.run(
            {"v1_i_activation": activations, "v1_i_weight": weights[:1]},
            {"v1_o_result": 5},
            quiet_cycles=200,
        )


def test_names_tell_units_apart():
    config = UNITS["scaled"]
    changes = [
        {"out": None},
        {"bias": False},
        {"accumulator_rows": 17},
        {"result_rows": 64},
        {"tiles_ahead": 3},
        {"adder": "bottom"},
        {"array": dataclasses.replace(config.array, latency=2)},
        {"array": dataclasses.replace(config.array, rows=3)},
        {"array": dataclasses.replace(config.array, dataflow=Dataflow.IS)},
    ]
    configs = [config, *(dataclasses.replace(config, **change) for change in changes)]
    names = {unelaborated(SystolicUnit(each)).definition_name for each in configs}
    assert len(names) == len(configs)
