"""array-h: parameters that cannot work are refused in one line that names them."""

import numpy as np
import pytest

import tilewright
from hw.arch.errors import BadInputError
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.tpu_catalog import PRESETS
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import bf16, e4m3, fp16, fp32, int8, int32
from sim.drivers.unit_driver import UnitTiling
from tests.hw.matrix.cycles import product_cycles, scale_sim_cycles

WS = Dataflow.WS


def unit(rows=2, columns=2, formats=(int8,), latency=1, dataflow=WS, **options):
    return UnitConfig(ArrayConfig(rows, columns, dataflow, formats, latency), **options)


REFUSED = [
    ({"rows": 0}, "^Array rows must be an integer from 1 to 1024, not 0$"),
    ({"columns": 0}, "^Array columns must be an integer from 1 to 1024, not 0$"),
    ({"rows": 2.0}, r"^Array rows must be an integer from 1 to 1024, not 2\.0$"),
    ({"columns": 1025}, "^Array columns must be .* not 1025$"),
    ({"dataflow": "ws"}, "^Array dataflow must be one of ws, os, is, not 'ws'$"),
    ({"formats": ()}, r"^Cell formats must be .* not \(\)$"),
    ({"formats": (int8, fp16)}, r"^Cell formats must be .* not \('int8', 'fp16'\)$"),
    ({"formats": (bf16, e4m3)}, r"^Cell formats must be .* not \('bf16', 'e4m3'\)$"),
    ({"formats": (fp32,)}, r"^Cell formats must be .* not \('fp32',\)$"),
    ({"latency": 0}, "^Cell latency must be an integer from 1 to 3, not 0$"),
    ({"latency": 4}, "^Cell latency must be an integer from 1 to 3, not 4$"),
    ({"accumulator_rows": 0}, "^Accumulator rows must be an integer from 1 to 65536, not 0$"),
    ({"result_rows": 3}, "^Result rows must be a power of two from 1 to 65536, not 3$"),
    ({"result_rows": False}, "^Result rows must be a power of two .* not False$"),
    ({"tiles_ahead": 0}, "^Tiles ahead must be an integer from 1 to 64, not 0$"),
    ({"out": bf16}, "^Result format must be one of int32, int8, not bf16$"),
    ({"formats": (bf16,), "out": int32}, "^Result format must be one of bf16, .* fp32, not int32$"),
    ({"formats": (bf16, int8), "out": fp32}, "^Result format must be left to the sums of both"),
    ({"out": "bf16"}, "^Result format must be one of int32, int8, not 'bf16'$"),
    ({"bias": 3}, "^Bias must be True or False, not 3$"),
    ({"adder": "side"}, "^Adder must be one of top, bottom, not 'side'$"),
    ({"formats": (bf16, int8), "bias": True}, "^Bias must be of a unit of one kind of sums, not "),
]


@pytest.mark.must("array-h", goal="every refused point has its typed error")
@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_cannot_work_is_refused(options, message, figure):
    with pytest.raises(BadInputError, match=message):
        unit(**options)
    figure(f"{len(REFUSED)} points")


BOTH = unit(formats=(bf16, int8))


def product(m=2, n=2, k=2, config=BOTH, formats=(bf16, bf16)):
    return UnitTiling(config, m, n, k, formats)


def streams(a, b):
    return product().streams(np.zeros(a, bf16.dtype), np.zeros(b, bf16.dtype))


def cycles(dataflow="ws", m=2, function=product_cycles, **sizes):
    return function(dataflow, m, 2, 2, **{"rows": 2, "columns": 2} | sizes)


PRODUCTS = [
    (lambda: product(m=0), "^Extent M must be an integer from 1 to .*, not 0$"),
    (lambda: product(k=2.0), "^Extent K must be .* not 2.0$"),
    (lambda: product(formats=(bf16, int8)), "^Product formats must be .* not bf16 and int8$"),
    (lambda: product(formats=(fp16, fp16)), "^Product formats must be .* bf16, int8 with one kind"),
    (lambda: product(formats=(bf16,)), "^Product formats must be two of .* not bf16$"),
    (lambda: streams((2, 3), (2, 2)), "^Activations must be 2 x 2 of bf16, not 2 x 3 of bfloat16$"),
    (lambda: streams((2, 2), (4,)), "^Weights must be 2 x 2 of bf16, not 4 of bfloat16$"),
    (
        lambda: product(formats=(int8, int8)).streams(np.eye(2), np.eye(2)),
        "^Activations must be 2 x 2 of int8, not 2 x 2 of float64$",
    ),
    (lambda: cycles("xs"), "^Dataflow must be one of ws, os, is, not 'xs'$"),
    (lambda: cycles(m=0), "^M must be an integer from 1 to .* not 0$"),
    (lambda: cycles(rows=0), "^Rows must be .* not 0$"),
    (lambda: cycles(latency=0), "^Latency must be .* not 0$"),
    (lambda: cycles(products=0), "^Products must be .* not 0$"),
    (lambda: cycles(accumulator_rows=0), "^Accumulator rows must be .* not 0$"),
    (lambda: cycles(adder="side"), "^Adder must be one of top, bottom, not 'side'$"),
    (lambda: cycles("xs", function=scale_sim_cycles), "^Dataflow must be one of .* not 'xs'$"),
    (lambda: PRESETS["tpu-v1"].scaled(0), "^Divisor must be an integer from 1 to .* not 0$"),
]


@pytest.mark.must("array-h", goal="every refused point has its typed error")
@pytest.mark.parametrize(("refused", "message"), PRODUCTS)
def test_what_cannot_be_multiplied_is_refused(refused, message, figure):
    with pytest.raises(BadInputError, match=message):
        refused()
    figure(f"{len(PRODUCTS)} products and sizes")


LINES = [
    ("--component systolic --rows 0", "--rows must be an integer from 1 to 1024, not '0'"),
    ("--component systolic --rows -1", "--rows must be an integer from 1 to 1024, not '-1'"),
    ("--component systolic --cols 2.5", "--cols must be an integer from 1 to 1024, not '2.5'"),
    ("--component systolic --latency 0", "--latency must be an integer from 1 to 3, not '0'"),
    ("--component systolic --accumulator-rows 0", "--accumulator-rows must be an integer from 1"),
    ("--component systolic --tiles-ahead 65", "--tiles-ahead must be an integer from 1 to 64, not"),
    (
        "--component systolic --result-rows 3",
        "--result-rows must be a power of two from 1 to 65536",
    ),
    ("--component systolic --format int8,fp16", "or a pair out of bf16,int8 bf16,fp16 e4m3,e5m2"),
    ("--component systolic --format bf16,bf16", "--format must be one of bf16, fp16, int8, e4m3, "),
    (
        "--component systolic --format fp32",
        "--format must be one of bf16, fp16, int8, e4m3, ",
    ),
    ("--component systolic --format int9", "not 'int9'; did you mean 'int8'"),
    ("--component systolic --format BF16", "not 'BF16'; did you mean 'bf16'"),
    ("--component systolic --dataflow xs", "--dataflow must be one of ws, os, is, not 'xs'"),
    ("--component systolic --dataflow WS", "not 'WS'; did you mean 'ws'"),
    ("--component SYSTOLIC", "not 'SYSTOLIC'; did you mean 'systolic'"),
    ("--component systolic --config tiny", "--config must come without --preset and --component"),
    ("--preset tpu-v1 --config tiny", "--config must come without --preset and --component"),
    ("--preset TPU-V1", "unknown preset 'TPU-V1'; did you mean 'tpu-v1'"),
    (
        "--component systolic --format bf16,int8 --bias",
        "Bias must be of a unit of one kind of sums",
    ),
    ("--component systolic --format bf16,int8 --out fp32", "--out must not be given with operands"),
    ("--component systolic --out BF16", "not 'BF16'; did you mean 'bf16'"),
    ("--component array --bias", "--bias must come with --component systolic or tensor_unit"),
    ("--component systolic --raw-edges", "--raw-edges must come with --component array"),
    ("--component array --out bf16", "--out must come with --component systolic"),
    ("--component array --preset tpu-v1", "--preset must come with --component systolic"),
    ("--component systolic --adder side", "--adder must be one of top, bottom, not 'side'"),
    (
        "--component systolic --adder bottom --dataflow os",
        "Bottom adder must be of a ws or is unit",
    ),
    ("--component array --adder bottom", "--adder must come with --component systolic"),
    ("--component systolic --out bf16 --format int8", "--out must be one of int32, int8 with"),
    (
        "--component systolic --buffer-rows 8",
        "--buffer-rows must come with --component tensor_unit",
    ),
    (
        "--component tensor_unit --instructions 8",
        "--instructions must come with --component tensor_",
    ),
    ("--component tensor_top --instructions 3", "--instructions must be a power of two from 2 to"),
    (
        "--component tensor_top --set instructions=2",
        "--set must not come with tensor_top, whose parameters are options, as --rows",
    ),
    ("--component tensor-unit --buffer-rows 1", "--buffer-rows must be an integer from 2 to"),
    ("--component tensor-unit --dataflow os", "Tensor unit dataflow must be ws, not os"),
    ("--component tensor-unit --format bf16,int8", "Tensor unit formats must be one"),
    *(
        (
            f"--component {component} --format {fmt}",
            f"--format of a {component} must be one of bf16, fp16, int8, e4m3, e5m2, which results "
            f"can have, not {fmt}\n",
        )
        for component in ("tensor_unit", "tensor_top")
        for fmt in ("mxe4m3", "int4", "e2m1")
    ),
    *(
        (
            f"--component systolic --dataflow os {option}",
            f"{option.split()[0]} must come with --dataflow ws or is, not os: it changes nothing",
        )
        for option in ("--accumulator-rows 99", "--tiles-ahead 3")
    ),
    *(
        (
            f"--component {component} --format {fmt} --multiplier dsp",
            f"--multiplier must come with a --format that has int8, not {fmt}: it changes nothing",
        )
        for component, fmt in (("array", "bf16"), ("systolic", "e4m3,e5m2"))
    ),
    ("--component tensor-unit --out int32 --format int8", "--out must be one of int8 with"),
    ("--component tensor-unit --preset tpu-v2", "must be one of tpu-v1, not 'tpu-v2'"),
    ("--preset tpu-v11", "unknown preset 'tpu-v11'; did you mean 'tpu-v1'"),
    ("--preset tpu-v1 --rows 3", "--rows must come with --component systolic or array"),
    (
        "--rows 3",
        "--rows must come with --component systolic or array or tensor_unit or tensor_top and",
    ),
]


@pytest.mark.must("array-h", goal="every refused point has its typed error")
@pytest.mark.parametrize("command", ["verilog", "area"])
@pytest.mark.parametrize(("words", "message"), LINES)
def test_a_command_refuses_in_one_line(command, words, message, capsys, tmp_path, figure):
    output = ["-o", str(tmp_path / "x.v")] if command == "verilog" else []
    assert tilewright.main([command, *words.split(), *output]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())
    figure(f"{len(LINES)} command lines, two commands each")
